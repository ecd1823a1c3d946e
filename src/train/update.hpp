#pragma once

#include <optional>
#include <string>

#include "data/loader.hpp"
#include "exec/model.hpp"

namespace lantern::train {

/// Folds the gradients of an iteration in. When its loss or a gradient is not finite, nothing is as
/// if the iteration had not been, and what it was is returned: the first such tensor in program
/// order, and the images.
std::optional<std::string> update_unless_faulty(exec::Model& model, double loss,
                                                const ops::RunContext& context,
                                                const data::Batch& batch);

}  // namespace lantern::train
