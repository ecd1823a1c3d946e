#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/autodiff.hpp"

namespace lantern::ops {

/// What the backward half of a batch normalisation is made from.
struct BatchNormGradient {
  std::span<const graph::TensorId> inputs;  ///< x, mean, variance, gamma, beta of forward
  std::shared_ptr<const graph::OpParams> params;
  /// What both ops read first: the gradient of the output, and what else is needed to spread it.
  std::vector<graph::TensorId> incoming;
};

/// Emits sums of dz and dz * xhat (reduce), the gradients of gamma and beta that they are, and dx
/// (apply).
void emit_batch_norm_gradient(graph::GradientBuilder& builder, const BatchNormGradient& of,
                              const graph::OpDef& reduce, const graph::OpDef& apply);

}  // namespace lantern::ops
