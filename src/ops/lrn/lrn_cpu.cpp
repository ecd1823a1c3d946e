#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/lrn/lrn.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  return {inputs[0]};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kLrnBackward, op.params, {*dy, op.inputs[0]}, {builder.target(op.inputs[0])});
}

constexpr std::int64_t kStrip = 16;  // pixels that one job handles side by side

// Sums of [begin, end) rows of `count` values, `stride` apart.
template <typename Value>
void sum_rows(std::int64_t begin, std::int64_t end, std::int64_t count, const Value& value,
              float* sums) {
  std::fill_n(sums, count, 0.0F);
  for (std::int64_t k = begin; k < end; ++k) {
    for (std::int64_t i = 0; i < count; ++i) sums[i] += value(k, i);
  }
}

// Norms of the channels of `count` pixels in a row into norms [channels][kStrip].
void norms_of(const ref::LrnSettings& p, std::int64_t channels, std::int64_t spatial,
              std::int64_t count, const float* x, float* norms) {
  const auto alpha = static_cast<float>(p.alpha);
  const auto kappa = static_cast<float>(p.kappa);
  for (std::int64_t c = 0; c < channels; ++c) {
    float* own = norms + c * kStrip;
    sum_rows(
        p.begin(c), p.end(c, channels), count,
        [&](std::int64_t k, std::int64_t i) { return x[k * spatial + i] * x[k * spatial + i]; },
        own);
    for (std::int64_t i = 0; i < count; ++i) own[i] = kappa + alpha * own[i];
  }
}

struct Extents {
  std::int64_t images, channels, spatial;
  explicit Extents(const Shape& shape)
      : images(shape.n()), channels(shape.c()), spatial(shape.h() * shape.w()) {}
  std::int64_t strips() const { return ceil_div(spatial, kStrip); }
  std::int64_t offset(std::int64_t job) const {
    return job / strips() * channels * spatial + job % strips() * kStrip;
  }
  std::int64_t count(std::int64_t job) const {
    return std::min(kStrip, spatial - job % strips() * kStrip);
  }
  // Scratch of every thread: `tables` times [channels][kStrip].
  std::int64_t table() const { return channels * kStrip; }
  Bytes scratch(int threads, int tables) const {
    return threads * tables * table() * static_cast<Bytes>(sizeof(float));
  }
};

}  // namespace

std::string LrnParams::describe() const {
  return fmt::format("alpha={} beta={} kappa={} size={}", settings.alpha, settings.beta,
                     settings.kappa, settings.size);
}

const graph::OpDef kLrnForward{.name = "lrn", .infer = infer, .gradient = gradient};
const graph::OpDef kLrnBackward{.name = "lrn_backward"};

KernelChoice choose_lrn_forward(const Op& op, const SelectContext& context) {
  const ref::LrnSettings p = op.params_as<LrnParams>().settings;
  const Extents e(context.shape(op.inputs[0]));
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}},
          .outputs = {Layout{}},
          .scratch = {e.scratch(threads, 1)},
          .images = e.images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images * e.strips(), threads, [&](std::int64_t job) {
              const float* x = static_cast<const float*>(o[0]) + e.offset(job);
              float* y = static_cast<float*>(o[1]) + e.offset(job);
              float* norms = static_cast<float*>(o[2]) + omp_get_thread_num() * e.table();
              const std::int64_t count = e.count(job);
              norms_of(p, e.channels, e.spatial, count, x, norms);
              for (std::int64_t c = 0; c < e.channels; ++c) {
                for (std::int64_t i = 0; i < count; ++i) {
                  y[c * e.spatial + i] =
                      x[c * e.spatial + i] *
                      std::pow(norms[c * kStrip + i], static_cast<float>(-p.beta));
                }
              }
            });
          })};
}

KernelChoice choose_lrn_backward(const Op& op, const SelectContext& context) {
  const ref::LrnSettings p = op.params_as<LrnParams>().settings;
  const Extents e(context.shape(op.inputs[0]));
  const bool accumulate = op.accumulates[0];
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}},
          .scratch = {e.scratch(threads, 2)},
          .images = e.images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto factor = static_cast<float>(2 * p.alpha * p.beta);
            parallel_for(run.images * e.strips(), threads, [&](std::int64_t job) {
              const float* dy = static_cast<const float*>(o[0]) + e.offset(job);
              const float* x = static_cast<const float*>(o[1]) + e.offset(job);
              float* dx = static_cast<float*>(o[2]) + e.offset(job);
              // norm^-beta, and the terms of the sums: d x norm^(-beta-1).
              float* powers = static_cast<float*>(o[3]) + omp_get_thread_num() * 2 * e.table();
              float* terms = powers + e.table();
              const std::int64_t count = e.count(job);
              norms_of(p, e.channels, e.spatial, count, x, powers);
              for (std::int64_t c = 0; c < e.channels; ++c) {
                for (std::int64_t i = 0; i < count; ++i) {
                  const std::int64_t at = c * e.spatial + i;
                  const float norm = powers[c * kStrip + i];
                  powers[c * kStrip + i] = std::pow(norm, static_cast<float>(-p.beta));
                  terms[c * kStrip + i] = dy[at] * x[at] * powers[c * kStrip + i] / norm;
                }
              }
              for (std::int64_t c = 0; c < e.channels; ++c) {
                float sums[kStrip];
                sum_rows(
                    p.readers_begin(c), p.readers_end(c, e.channels), count,
                    [&](std::int64_t k, std::int64_t i) { return terms[k * kStrip + i]; }, sums);
                for (std::int64_t i = 0; i < count; ++i) {
                  const std::int64_t at = c * e.spatial + i;
                  const float d = dy[at] * powers[c * kStrip + i] - factor * x[at] * sums[i];
                  dx[at] = accumulate ? dx[at] + d : d;
                }
              }
            });
          })};
}

}  // namespace lantern::ops
