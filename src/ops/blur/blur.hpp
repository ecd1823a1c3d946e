#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/blur/blur_ref.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

using ref::BlurGeometry;
using ref::BlurKind;

struct BlurParams final : graph::OpParams {
  explicit BlurParams(const BlurGeometry& g) : geometry(g) {}
  BlurGeometry geometry;
  std::string describe() const override;
};

/// dst [N,C,OH,OW] = every channel of src [N,C,H,W] under the fixed blur, with its stride.
extern const graph::OpDef kBlurForward;
/// diff_src (+)= its transpose. Inputs diff_dst.
extern const graph::OpDef kBlurBackward;

KernelChoice choose_blur_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_blur_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
