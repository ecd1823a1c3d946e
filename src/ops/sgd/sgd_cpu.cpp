#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>

#include "ops/parallel.hpp"
#include "ops/sgd/sgd.hpp"

namespace lantern::ops {

std::string SgdParams::describe() const {
  return fmt::format("decay={} rate_factor={}{}{}{}", decays, rate_factor,
                     limit > 0 ? fmt::format(" limit={}", limit) : "",
                     clip > 0 ? fmt::format(" clip={}", clip) : "",
                     reverse != 0 ? fmt::format(" reverse={}", reverse) : "");
}
std::string AdamParams::describe() const {
  return fmt::format("beta1={} beta2={} epsilon={} decay={} rate_factor={}{}", beta1, beta2,
                     epsilon, decays, rate_factor, clip > 0 ? fmt::format(" clip={}", clip) : "");
}

std::string AverageParams::describe() const { return fmt::format("alpha={}", alpha); }

const graph::OpDef kSgdStep{.name = "sgd_step"};
const graph::OpDef kAdamStep{.name = "adam_step"};
const graph::OpDef kAverageStep{.name = "average_step"};
const graph::OpDef kFiniteCheck{.name = "finite_check"};

namespace {
std::int64_t padded_count(const SelectContext& context, graph::TensorId id, const Layout& layout) {
  return layout.bytes(context.shape(id), DType::kF32) / static_cast<Bytes>(sizeof(float));
}
}  // namespace

KernelChoice choose_sgd_step(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<SgdParams>();
  const Layout layout = context.layout(op.outputs[0]).value_or(Layout{});
  const std::int64_t count = padded_count(context, op.outputs[0], layout);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout, layout},
          .kernel = make_kernel(
              [=, decays = params.decays, factor = params.rate_factor, clip = params.clip,
               limit = params.limit, reverse = params.reverse,
               first = params.first_iteration](std::span<void* const> o, const RunContext& run) {
                if (run.iteration < first) return;
                const auto* gradient = static_cast<const float*>(o[0]);
                auto* w = static_cast<float*>(o[1]);
                auto* buffer = static_cast<float*>(o[2]);
                const float rate = run.learning_rate * factor / run.batch;
                const float decay = decays ? run.decay * run.batch : 0.0F;
                const float momentum = run.momentum;
                parallel_ranges(count, threads, [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    float sum = buffer[i] + gradient[i];
                    if (limit > 0) sum = std::clamp(sum, -limit, limit);
                    float u = sum - decay * w[i];
                    if (reverse != 0 && u != 0) {
                      u = std::copysign(std::pow(10 * std::abs(u) + 1, reverse), u);
                    }
                    w[i] += rate * u;
                    buffer[i] = momentum * u;
                  }
                  if (clip > 0) {
                    for (std::int64_t i = begin; i < end; ++i) w[i] = std::clamp(w[i], -clip, clip);
                  }
                });
              })};
}

KernelChoice choose_adam_step(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<AdamParams>();
  const Layout layout = context.layout(op.outputs[0]).value_or(Layout{});
  const std::int64_t count = padded_count(context, op.outputs[0], layout);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout, layout, layout},
          .kernel = make_kernel(
              [=, beta1 = params.beta1, beta2 = params.beta2, epsilon = params.epsilon,
               decays = params.decays, factor = params.rate_factor, clip = params.clip,
               first = params.first_iteration](std::span<void* const> o, const RunContext& run) {
                if (run.iteration < first) return;
                const auto* gradient = static_cast<const float*>(o[0]);
                auto* w = static_cast<float*>(o[1]);
                auto* mean = static_cast<float*>(o[2]);
                auto* square = static_cast<float*>(o[3]);
                const auto step = static_cast<double>(std::max<std::int64_t>(1, run.iteration));
                const auto correction1 =
                    static_cast<float>(1.0 - std::pow(static_cast<double>(beta1), step));
                const auto correction2 =
                    static_cast<float>(1.0 - std::pow(static_cast<double>(beta2), step));
                const float rate = run.learning_rate * factor;
                const float decay = decays ? run.decay : 0.0F;
                const float batch = run.batch;
                parallel_ranges(count, threads, [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const float g = gradient[i] / batch - decay * w[i];
                    mean[i] = beta1 * mean[i] + (1 - beta1) * g;
                    square[i] = beta2 * square[i] + (1 - beta2) * g * g;
                    const float root = std::sqrt(square[i] / correction2);
                    w[i] += rate * (mean[i] / correction1) / (root + epsilon);
                    if (clip > 0) w[i] = std::clamp(w[i], -clip, clip);
                  }
                });
              })};
}

KernelChoice choose_average_step(const graph::Op& op, const SelectContext& context) {
  const Layout layout = context.layout(op.outputs[0]).value_or(Layout{});
  const std::int64_t count = padded_count(context, op.outputs[0], layout);
  return {.name = "cpu",
          .outputs = {layout, layout},
          .kernel = make_kernel(
              [count, threads = context.threads, alpha = op.params_as<AverageParams>().alpha](
                  std::span<void* const> o, const RunContext& run) {
                if (run.averaging == Averaging::kOff) return;
                auto* w = static_cast<float*>(o[0]);
                auto* average = static_cast<float*>(o[1]);
                const float keep = run.averaging == Averaging::kStart ? 0.0F : alpha;
                parallel_ranges(count, threads, [&](std::int64_t begin, std::int64_t end) {
                  if (run.averaging == Averaging::kApply) {
                    std::copy(average + begin, average + end, w + begin);
                    return;
                  }
                  for (std::int64_t i = begin; i < end; ++i)
                    average[i] = keep == 0 ? w[i] : keep * average[i] + (1 - keep) * w[i];
                });
              })};
}

KernelChoice choose_finite_check(const graph::Op& op, const SelectContext& context) {
  KernelChoice choice{.name = "cpu", .outputs = {Layout{}}};
  std::vector<std::int64_t> counts;
  for (const graph::TensorId id : op.inputs) {
    choice.inputs.push_back(context.layout(id).value_or(Layout{}));
    counts.push_back(padded_count(context, id, choice.inputs.back()));
  }
  choice.kernel =
      make_kernel([counts, threads = context.threads](std::span<void* const> o, const RunContext&) {
        auto* flags = static_cast<float*>(o[counts.size()]);
        for (std::size_t k = 0; k < counts.size(); ++k) {
          const auto* values = static_cast<const float*>(o[k]);
          std::atomic<bool> bad{false};
          parallel_ranges(counts[k], threads, [&](std::int64_t begin, std::int64_t end) {
            // NaN and infinity are the values whose exponent bits are all ones; integers keep the
            // loop in vectors.
            constexpr std::uint32_t kExponent = 0x7f800000U;
            std::uint32_t found = 0;
            for (std::int64_t i = begin; i < end; ++i) {
              const auto bits = std::bit_cast<std::uint32_t>(values[i]);
              found |= static_cast<std::uint32_t>((bits & kExponent) == kExponent);
            }
            if (found != 0) bad.store(true, std::memory_order_relaxed);
          });
          flags[k] = bad.load() ? 1.0F : 0.0F;
        }
      });
  return choice;
}

}  // namespace lantern::ops
