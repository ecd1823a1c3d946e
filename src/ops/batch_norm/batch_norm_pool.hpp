#pragma once

#include "graph/graph.hpp"
#include "ops/activation/activation.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// Batch normalisation, activation and a 2x2 max pool of stride 2 in one pass: the normalised map,
/// four times the size of its pool, is never written, and backward spreads the pool's gradient
/// while it runs through x. Same values as kBatchNormApply followed by kMaxPoolForward. Height and
/// width are even.
struct BatchNormPoolParams final : graph::OpParams {
  BatchNormPoolParams(Activation a, bool fixed_statistics, bool index)
      : activation(a), fixed(fixed_statistics), keeps_index(index) {}
  Activation activation = Activation::kLinear;
  bool fixed = false;  ///< statistics are constants: no gradient through them
  bool keeps_index =
      false;  ///< training: a second output holds the index of the maximum inside its window
  std::string describe() const override;
};

/// Inputs x, mean, variance, gamma, beta -> pooled [N,C,H/2,W/2][, index u8].
extern const graph::OpDef kBatchNormPool;
/// Inputs d_pooled, index, x, mean, variance, gamma, beta -> sum(dz) [C], sum(dz * xhat) [C].
extern const graph::OpDef kBatchNormPoolBackwardReduce;
/// Inputs d_pooled, index, x, mean, variance, gamma, beta, sum_dz, sum_dz_xhat -> dx, overwritten.
extern const graph::OpDef kBatchNormPoolBackwardApply;

KernelChoice choose_batch_norm_pool(const graph::Op& op, const SelectContext& context);
KernelChoice choose_batch_norm_pool_backward_reduce(const graph::Op& op,
                                                    const SelectContext& context);
KernelChoice choose_batch_norm_pool_backward_apply(const graph::Op& op,
                                                   const SelectContext& context);

}  // namespace lantern::ops
