#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// y [N, out, 1, 1] = W x (+ bias). Inputs x [N,C,H,W] read as a vector of C*H*W values in plain
/// order, weights [out, C*H*W], optionally bias [out].
extern const graph::OpDef kLinearForward;
/// diff_x (+)= W^T diff_y. Inputs diff_y, weights.
extern const graph::OpDef kLinearBackwardData;
/// diff_weights = diff_y x^T, summed image by image in double; adds to what earlier mini-batches of
/// the iteration left. Inputs diff_y, x.
extern const graph::OpDef kLinearBackwardWeights;
/// y = x; its gradient is clamped to [-1, 1] on the way back (reference/layers.md 4.12). Forward
/// may run in place and then does nothing.
extern const graph::OpDef kClampGradient;
/// diff_x (+)= diff_y clamped to [-1, 1]; NaN stays.
extern const graph::OpDef kClampGradientBackward;

KernelChoice choose_linear_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_linear_backward_data(const graph::Op& op, const SelectContext& context);
KernelChoice choose_linear_backward_weights(const graph::Op& op, const SelectContext& context);
KernelChoice choose_clamp_gradient(const graph::Op& op, const SelectContext& context);
KernelChoice choose_clamp_gradient_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
