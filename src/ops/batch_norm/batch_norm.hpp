#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/activation/activation.hpp"

namespace lantern::ops {

inline constexpr float kBatchNormEpsilon = 1e-5F;
/// Weight of a new mini-batch in the rolling statistics (cuDNN's law, reference/layers.md section
/// 3).
inline constexpr float kRollingMomentum = 0.01F;

struct BatchNormParams final : graph::OpParams {
  BatchNormParams(Activation a, bool with_residual, bool fixed_statistics, std::int64_t first = 0)
      : activation(a), residual(with_residual), fixed(fixed_statistics), gradient_first(first) {}
  Activation activation = Activation::kLinear;
  bool residual = false;  ///< a sixth input is added after the activation
  bool fixed = false;     ///< statistics are constants (rolling ones): no gradient through them
  /// Backward: dy is the slice of its tensor that begins at this channel, a multiple of 16.
  std::int64_t gradient_first = 0;
  std::string describe() const override;
};

/// mean, biased variance [C] of x [N,C,H,W] over images and positions; per-image partial sums in
/// double.
extern const graph::OpDef kBatchNormStatistics;
/// y = act(gamma * (x - mean) / sqrt(variance + eps) + beta) [+ residual].  Inputs x, mean,
/// variance, gamma, beta[, r].
extern const graph::OpDef kBatchNormApply;
/// Inputs dy, x, mean, variance, gamma, beta -> sum(dz) [C], sum(dz * xhat) [C] of this mini-batch,
/// where dz is the gradient behind the activation. They are the gradients of beta and gamma and
/// what dx needs.
extern const graph::OpDef kBatchNormBackwardReduce;
/// dx (+)= gamma / sqrt(variance + eps) * (dz - mean(dz) - xhat * mean(dz * xhat)), may run in
/// place over dy. Inputs dy, x, mean, variance, gamma, beta, sum_dz, sum_dz_xhat.
extern const graph::OpDef kBatchNormBackwardApply;
/// rolling = 0.99 rolling + 0.01 (mean, unbiased variance). Inputs mean, variance; outputs
/// accumulate.
extern const graph::OpDef kBatchNormRolling;

struct BatchNormRollingParams final : graph::OpParams {
  explicit BatchNormRollingParams(std::int64_t n) : values_per_channel(n) {}
  std::int64_t values_per_channel;
};

}  // namespace lantern::ops
