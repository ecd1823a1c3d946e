#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct DepthPoolParams final : graph::OpParams {
  DepthPoolParams(std::int64_t channels, bool index) : out_channels(channels), keeps_index(index) {}
  std::int64_t out_channels = 1;
  bool keeps_index =
      false;  ///< training: a second output holds how many times out_channels was added
  std::string describe() const override;
};

/// dst[g] = largest of channels g, g + OC, g + 2 OC, ...; the first one wins a tie.
/// src [N,C,H,W] -> dst [N,OC,H,W][, index i32 like dst].
extern const graph::OpDef kDepthPoolForward;
/// diff_src (+)= diff_dst at the channel that won. Inputs diff_dst, index.
extern const graph::OpDef kDepthPoolBackward;

KernelChoice choose_depth_pool_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_depth_pool_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
