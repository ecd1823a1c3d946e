#pragma once

#include "core/device_spec.hpp"
#include "graph/selected.hpp"

namespace lantern::plan {

/// Seconds of one op for all of its images by the roofline model (memory.md, section 1):
/// start + max(flops / (peak x efficiency of its class), bytes / memory bandwidth). The class is
/// read from the kind's name and, for convolutions, from the shape of the weights. Scratch counts
/// no bytes: another machine's kernels need another amount.
double op_seconds(const graph::Selected& selected, const graph::SelectedOp& op,
                  const DeviceSpec& device);

/// Fills SelectedOp::seconds of every op with it.
void set_costs(graph::Selected& selected, const DeviceSpec& device);

}  // namespace lantern::plan
