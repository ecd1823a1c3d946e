#pragma once

#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct SgdParams final : graph::OpParams {
  bool decays = false;       ///< weights decay; biases and scales do not
  float rate_factor = 1.0F;  ///< the layer's own learning_rate
  float limit =
      0.0F;  ///< > 0: buffer + gradient is clamped to [-limit, limit] (weights of a shortcut: 1)
  float clip = 0.0F;     ///< > 0: weights are clamped to [-clip, clip] after the step
  float reverse = 0.0F;  ///< not 0: u becomes sign(u) (10 |u| + 1)^reverse before the step
  std::int64_t first_iteration =
      0;  ///< no update before this iteration (stopbackward=N, dont_update, burnin_update)
  std::string describe() const override;
};

/// One step of momentum SGD, reference/training.md 9.1, with the gradient in a tensor of its own:
/// u = momentum_buffer + gradient - decay * B * w;  w += rate / B * u;  momentum_buffer = momentum
/// * u. Input gradient; outputs w and momentum_buffer are updated in place. All three share one
/// layout.
extern const graph::OpDef kSgdStep;

struct AdamParams final : graph::OpParams {
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-6F;
  bool decays = true;
  float rate_factor = 1.0F;
  float clip = 0.0F;
  std::int64_t first_iteration = 0;
  std::string describe() const override;
};

/// One step of Adam with coupled decay: g = gradient / B - decay * w; m = b1 m + (1 - b1) g; v = b2
/// v + (1 - b2) g^2; w += rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), t = iteration.
/// Input gradient; outputs w, m and v are updated in place. All four share one layout.
extern const graph::OpDef kAdamStep;

struct AverageParams final : graph::OpParams {
  float alpha = 0;
  std::string describe() const override;
};

/// One step of the exponential moving average of weights, reference/training.md section 11, behind
/// the step that changes them: average = alpha * average + (1 - alpha) * w, as
/// RunContext::averaging says. Outputs w and average are updated in place and share one layout.
extern const graph::OpDef kAverageStep;

/// Inputs: parameter gradients; output f32 [count], 1 where a gradient holds NaN or infinity, else
/// 0.
extern const graph::OpDef kFiniteCheck;

KernelChoice choose_sgd_step(const graph::Op& op, const SelectContext& context);
KernelChoice choose_adam_step(const graph::Op& op, const SelectContext& context);
KernelChoice choose_average_step(const graph::Op& op, const SelectContext& context);
KernelChoice choose_finite_check(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
