#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct BroadcastParams final : graph::OpParams {
  explicit BroadcastParams(const Shape& s) : shape(s) {}
  Shape shape;  ///< [N,C,H,W] of the output
  std::string describe() const override;
};

/// dst [N,C,H,W], every image equal to the parameter src [C*H*W] in plain order.
extern const graph::OpDef kBroadcast;
/// diff_src = sum of diff_dst over the images, image by image in double; adds to what earlier
/// mini-batches of the iteration left.
extern const graph::OpDef kBroadcastBackward;

KernelChoice choose_broadcast(const graph::Op& op, const SelectContext& context);
KernelChoice choose_broadcast_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
