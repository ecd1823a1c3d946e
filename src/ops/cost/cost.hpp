#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/cost/cost_ref.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

using ref::CostKind;

struct CostParams final : graph::OpParams {
  CostParams(CostKind k, float s) : kind(k), scale(s) {}
  CostKind kind = CostKind::kSse;
  float scale = 1.0F;  ///< factor of the gradient handed on, not of the cost
  std::string describe() const override;
};

/// [cost] against a truth vector. Inputs x [N,C,H,W], truth [N, C*H*W] in plain order -> delta like
/// x (half the negative derivative of the error), cost f64 [N, 1]: sum of the errors of each image.
extern const graph::OpDef kCostLoss;
/// diff_src (+)= scale * delta. Inputs delta.
extern const graph::OpDef kCostBackward;

KernelChoice choose_cost_loss(const graph::Op& op, const SelectContext& context);
KernelChoice choose_cost_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
