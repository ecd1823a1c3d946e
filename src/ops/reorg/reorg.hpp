#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/reorg/reorg_ref.hpp"

namespace lantern::ops {

using ref::ReorgKind;

struct ReorgParams final : graph::OpParams {
  ReorgParams(ReorgKind k, std::int64_t s) : kind(k), stride(s) {}
  ReorgKind kind;
  std::int64_t stride = 2;
  std::string describe() const override;
};

/// Moves cells of s x s blocks into channels or back: src [N,C,H,W] -> [N, C*s*s, H/s, W/s], for
/// kDepthToSpace [N, C/(s*s), H*s, W*s]. A permutation of each image.
extern const graph::OpDef kReorgForward;
/// diff_src (+)= the inverse permutation of diff_dst. Inputs diff_dst.
extern const graph::OpDef kReorgBackward;

KernelChoice choose_reorg_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_reorg_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
