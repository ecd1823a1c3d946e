#pragma once

#include <span>
#include <string>

#include "exec/model.hpp"
#include "train/metrics.hpp"
#include "train/run_setup.hpp"

// Lines of a training that scripts read (reference/training.md 13.3).
namespace lantern::train {

/// Cost of a mini-batch as it is printed: the mean over the loss layers. Of a classifier with
/// [softmax] and [cost] it is the cross-entropy, which alone says something; both are trained on.
double printed_cost(const RunSetup& setup, std::span<const exec::LossReport> losses);
/// `<t>: <loss>, <avg> avg loss, ...` of a detector, `<t>, <epochs>: <loss>, <avg> avg, ...` of a
/// classifier.
std::string iteration_line(const RunSetup& setup, const IterationRecord& record, double hours_left);

}  // namespace lantern::train
