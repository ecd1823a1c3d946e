#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct DropoutParams final : graph::OpParams {
  DropoutParams(float p, int which) : probability(p), layer(which) {}
  float probability = 0.5F;
  int layer = 0;  ///< tells the masks of several dropouts apart
  std::string describe() const override;
};

/// Training: dst = 0 with probability p, else src / (1 - p). The draw of an element is a function
/// of (seed, layer, iteration, image of the iteration, position, channel) only, so backward makes
/// the mask again and layouts, threads and recomputation do not matter. May run in place.
extern const graph::OpDef kDropoutForward;
/// diff_src (+)= diff_dst with the mask and factor of forward. Inputs diff_dst.
extern const graph::OpDef kDropoutBackward;

/// The factors of one image [C, spatial] in plain order: 0 or 1 / (1 - p).
void dropout_factors(const DropoutParams& params, const RunContext& context, std::int64_t images,
                     std::int64_t image, std::int64_t channels, std::int64_t spatial,
                     float* factors);

KernelChoice choose_dropout_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_dropout_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
