#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/add/add_ref.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

using ref::AddNormalization;

struct WeightedAddParams final : graph::OpParams {
  WeightedAddParams(AddNormalization n, bool channels) : normalization(n), per_channel(channels) {}
  AddNormalization normalization;
  bool per_channel = false;  ///< weights [inputs * C], input-major; else [inputs]
  std::string describe() const override;
};
struct WeightedAddSourceParams final : graph::OpParams {
  WeightedAddSourceParams(const WeightedAddParams& a, std::int64_t i, std::int64_t n)
      : add(a), index(i), inputs(n) {}
  WeightedAddParams add;
  std::int64_t index = 0;   ///< which input's gradient
  std::int64_t inputs = 1;  ///< of the sum
  std::string describe() const override;
};

/// dst = sum of w_i x_i with normalised weights: relu max(w, 0.001) / (1e-4 + sum), softmax e^(w -
/// max) / (1e-4 + sum). Inputs weights, x_0, x_1, ...; the result has the shape of x_0, others join
/// as in kAddForward.
extern const graph::OpDef kWeightedAddForward;
/// diff_x_i (+)= w_i diff_dst. Inputs diff_dst, weights.
extern const graph::OpDef kWeightedAddBackwardSource;
/// Exact gradient of the raw weights through the normalisation, summed image by image in double.
/// Inputs diff_dst, weights, x_0, x_1, ...
extern const graph::OpDef kWeightedAddBackwardWeights;

KernelChoice choose_weighted_add_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_weighted_add_backward_source(const graph::Op& op, const SelectContext& context);
KernelChoice choose_weighted_add_backward_weights(const graph::Op& op,
                                                  const SelectContext& context);

}  // namespace lantern::ops
