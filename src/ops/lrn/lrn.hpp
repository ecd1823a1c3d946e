#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/lrn/lrn_ref.hpp"

namespace lantern::ops {

struct LrnParams final : graph::OpParams {
  explicit LrnParams(const ref::LrnSettings& s) : settings(s) {}
  ref::LrnSettings settings;
  std::string describe() const override;
};

/// y = x * norm^-beta, norm_c = kappa + alpha * sum of x^2 over a window of channels clipped to the
/// map. x [N,C,H,W].
extern const graph::OpDef kLrnForward;
/// diff_x (+)= the exact gradient. Inputs diff_y, x.
extern const graph::OpDef kLrnBackward;

KernelChoice choose_lrn_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_lrn_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
