#pragma once

#include <vector>

#include "graph/autodiff.hpp"

namespace lantern::ops {

/// Emits the backward half of a batch normalisation op whose inputs begin with x, mean, variance,
/// gamma, beta: sums of dz and dz * xhat (reduce), the gradients of gamma and beta that they are,
/// and dx (apply). `incoming` is what both ops read first: the gradient of the output, and what
/// else is needed to spread it.
void emit_batch_norm_gradient(graph::GradientBuilder& builder, const graph::Op& op,
                              const std::vector<graph::TensorId>& incoming,
                              const graph::OpDef& reduce, const graph::OpDef& apply);

}  // namespace lantern::ops
