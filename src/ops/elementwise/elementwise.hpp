#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// dst (+)= src, same shape.
extern const graph::OpDef kCopy;
/// Parameter gradient of rank 1 += values of one mini-batch; the first mini-batch of an iteration
/// overwrites.
extern const graph::OpDef kAddParameterGradient;

KernelChoice choose_copy(const graph::Op& op, const SelectContext& context);
KernelChoice choose_add_parameter_gradient(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
