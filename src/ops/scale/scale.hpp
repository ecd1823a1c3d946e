#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/scale/scale_ref.hpp"

namespace lantern::ops {

using ref::ScaleKind;

struct ScaleParams final : graph::OpParams {
  explicit ScaleParams(ScaleKind k) : kind(k) {}
  ScaleKind kind;
  std::string describe() const override;
};

/// dst = src * scale. Inputs src [N,C,H,W] and scale: [N,C,1,1] per channel, [N,1,H,W] per pixel,
/// [N,C,H,W] per element.
extern const graph::OpDef kScaleForward;
/// diff_src (+)= diff_dst * scale. Inputs diff_dst, scale.
extern const graph::OpDef kScaleBackwardSource;
/// diff_scale (+)= sum of diff_dst * src over what one factor multiplied. Inputs diff_dst, src.
extern const graph::OpDef kScaleBackwardScale;

KernelChoice choose_scale_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_scale_backward_source(const graph::Op& op, const SelectContext& context);
KernelChoice choose_scale_backward_scale(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
