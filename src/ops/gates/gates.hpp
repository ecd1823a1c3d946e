#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

// Pointwise ops of gated recurrent sections; all operands have the same shape [N,C,H,W].
namespace lantern::ops {

/// y = gate * a + (1 - gate) * b. Inputs gate, a, b.
extern const graph::OpDef kBlendForward;
/// diff_gate (+)= diff_y * (a - b). Inputs diff_y, a, b.
extern const graph::OpDef kBlendBackwardGate;
/// diff_b (+)= diff_y * (1 - gate). Inputs diff_y, gate. The gradient of `a` is that of a product.
extern const graph::OpDef kBlendBackwardOther;

struct FactorParams final : graph::OpParams {
  explicit FactorParams(float v) : value(v) {}
  float value;
  std::string describe() const override;
};

/// y = x clamped to [-value, value]; NaN stays.
extern const graph::OpDef kClampForward;
/// diff_x (+)= diff_y where x lies in [-value, value], else 0. Inputs diff_y, x.
extern const graph::OpDef kClampBackward;

/// y = x; its gradient is multiplied by `value` on the way back. Forward may run in place and then
/// does nothing.
extern const graph::OpDef kGradientFactor;
/// diff_x (+)= diff_y * value.
extern const graph::OpDef kGradientFactorBackward;

KernelChoice choose_blend_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_blend_backward_gate(const graph::Op& op, const SelectContext& context);
KernelChoice choose_blend_backward_other(const graph::Op& op, const SelectContext& context);
KernelChoice choose_clamp_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_clamp_backward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_gradient_factor(const graph::Op& op, const SelectContext& context);
KernelChoice choose_gradient_factor_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
