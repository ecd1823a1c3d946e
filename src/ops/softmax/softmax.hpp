#pragma once

#include <memory>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/softmax/word_tree.hpp"

namespace lantern::ops {

struct SoftmaxParams final : graph::OpParams {
  SoftmaxParams(std::int64_t g, float t, bool over_channels = false)
      : groups(g), temperature(t), spatial(over_channels) {}
  std::int64_t groups = 1;  ///< equal consecutive parts of an image, one softmax each
  /// Divides the inputs; the gradient does not know it (reference/layers.md 4.14).
  float temperature = 1.0F;
  bool spatial = false;                    ///< one softmax over the channels of every pixel instead
  std::shared_ptr<const WordTree> tree{};  ///< one softmax a group of siblings instead; may be null
  std::string describe() const override;
};

/// y = softmax(x / temperature), maximum subtracted, x [N,C,H,W] in plain order. As in the cfg
/// format the gradient that arrives at y is taken to be one with respect to x: what follows is a
/// [cost], whose delta t - y is meant for x.
extern const graph::OpDef kSoftmaxForward;
/// Training. Inputs x, truth [N, C*H*W] -> p, delta = truth - p (0 where truth is -1234), cost f64
/// [N, 1]: -sum of truth * ln p.
extern const graph::OpDef kSoftmaxLoss;

KernelChoice choose_softmax_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_softmax_loss(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
