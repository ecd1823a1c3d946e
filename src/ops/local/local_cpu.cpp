#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "ops/broadcast/broadcast.hpp"
#include "ops/local/local.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Graph;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const LocalGeometry& g = static_cast<const LocalParams&>(params).geometry;
  LANTERN_ASSERT((inputs[0].shape == Shape{g.n, g.c, g.ih, g.iw}),
                 "the source has the shape the op was made for");
  LANTERN_ASSERT(inputs[1].shape.elements() == g.weights_count() &&
                     inputs[2].shape.elements() == g.dst_image(),
                 "weights and biases have the right count");
  return {{Shape{g.n, g.filters, g.oh, g.ow}, DType::kF32}};
}

double flops(const Graph& /*graph*/, const Op& op) {
  const LocalGeometry& g = op.params_as<LocalParams>().geometry;
  return 2.0 * static_cast<double>(g.n) * static_cast<double>(g.weights_count());
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  if (builder.wants(op.inputs[2])) {
    builder.emit(kBroadcastBackward,
                 std::make_shared<const BroadcastParams>(builder.graph().type(*dy).shape), {*dy},
                 {builder.target(op.inputs[2])});
  }
  if (builder.wants(op.inputs[1])) {
    builder.emit(kLocalBackwardWeights, op.params, {*dy, op.inputs[0]},
                 {builder.target(op.inputs[1])});
  }
  if (builder.wants(op.inputs[0])) {
    builder.emit(kLocalBackwardData, op.params, {*dy, op.inputs[1]},
                 {builder.target(op.inputs[0])});
  }
}

constexpr int kLanes = 16;
constexpr std::int64_t kTile = 8;     // images that share one pass over weights
constexpr std::int64_t kStrip = 512;  // weights of a filter that one job of a backward pass owns

// The taps of one position, of `images` images: [image][tap].
void gather(const LocalGeometry& g, std::int64_t location, std::int64_t images, const float* src,
            float* patches) {
  for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
    const std::int64_t source = g.source(location, tap);
    for (std::int64_t image = 0; image < images; ++image) {
      patches[image * g.taps() + tap] = source < 0 ? 0.0F : src[image * g.src_image() + source];
    }
  }
}

float dot(const float* a, const float* b, std::int64_t count) {
  auto partial = splat<kLanes>(0.0F);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) partial += load<kLanes>(a + i) * load<kLanes>(b + i);
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += partial[lane];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

Bytes floats(std::int64_t count) { return count * static_cast<Bytes>(sizeof(float)); }

// What a job of backward_data owns: whole channels with about kStrip taps a filter.
std::int64_t channels_per_job(const LocalGeometry& g) {
  return std::clamp<std::int64_t>(kStrip / (g.size * g.size), 1, g.c);
}

// Gradients of channels [first, last) of `images` images; sums is [kTile][taps of the channels].
void backward_channels(const LocalGeometry& g, std::int64_t first, std::int64_t last,
                       std::int64_t images, const float* dy, const float* weights, float* sums,
                       float* dx) {
  const std::int64_t window = g.size * g.size;
  const std::int64_t begin = first * window;
  const std::int64_t taps = (last - first) * window;
  for (std::int64_t tile = 0; tile < images; tile += kTile) {
    const std::int64_t count = std::min(kTile, images - tile);
    for (std::int64_t location = 0; location < g.locations(); ++location) {
      std::fill_n(sums, count * taps, 0.0F);
      for (std::int64_t f = 0; f < g.filters; ++f) {
        const float* row = weights + (location * g.filters + f) * g.taps() + begin;
        for (std::int64_t t = 0; t < count; ++t) {
          const float d = dy[(tile + t) * g.dst_image() + f * g.locations() + location];
          float* sum = sums + t * taps;
          for (std::int64_t i = 0; i < taps; ++i) sum[i] += d * row[i];
        }
      }
      for (std::int64_t i = 0; i < taps; ++i) {
        const std::int64_t source = g.source(location, begin + i);
        if (source < 0) continue;
        for (std::int64_t t = 0; t < count; ++t)
          dx[(tile + t) * g.src_image() + source] += sums[t * taps + i];
      }
    }
  }
}

}  // namespace

std::string LocalParams::describe() const {
  return fmt::format("filters={} size={} stride={} pad={}", geometry.filters, geometry.size,
                     geometry.stride, geometry.pad);
}

const graph::OpDef kLocalForward{
    .name = "local", .infer = infer, .flops = flops, .gradient = gradient};
const graph::OpDef kLocalBackwardData{.name = "local_backward_data", .flops = flops};
const graph::OpDef kLocalBackwardWeights{.name = "local_backward_weights", .flops = flops};

KernelChoice choose_local_forward(const Op& op, const SelectContext& context) {
  const LocalGeometry g = op.params_as<LocalParams>().geometry;
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}, Layout{}},
          .outputs = {Layout{}},
          .scratch = {floats(threads * g.n * g.taps())},
          .images = g.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* src = static_cast<const float*>(o[0]);
            const auto* weights = static_cast<const float*>(o[1]);
            const auto* bias = static_cast<const float*>(o[2]);
            auto* dst = static_cast<float*>(o[3]);
            parallel_for(g.locations(), threads, [&](std::int64_t location) {
              float* patches = static_cast<float*>(o[4]) + omp_get_thread_num() * g.n * g.taps();
              gather(g, location, run.images, src, patches);
              for (std::int64_t f = 0; f < g.filters; ++f) {
                const float* row = weights + (location * g.filters + f) * g.taps();
                const std::int64_t at = f * g.locations() + location;
                for (std::int64_t image = 0; image < run.images; ++image) {
                  dst[image * g.dst_image() + at] =
                      dot(row, patches + image * g.taps(), g.taps()) + bias[at];
                }
              }
            });
          })};
}

KernelChoice choose_local_backward_data(const Op& op, const SelectContext& context) {
  const LocalGeometry g = op.params_as<LocalParams>().geometry;
  const bool accumulate = op.accumulates[0];
  const int threads = context.threads;
  const std::int64_t channels = channels_per_job(g);
  const std::int64_t sums = kTile * channels * g.size * g.size;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}},
          .scratch = {floats(threads * sums)},
          .images = g.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            auto* dx = static_cast<float*>(o[2]);
            parallel_for(ceil_div(g.c, channels), threads, [&](std::int64_t job) {
              const std::int64_t first = job * channels;
              const std::int64_t last = std::min(g.c, first + channels);
              if (!accumulate) {
                const std::int64_t plane = g.ih * g.iw;
                for (std::int64_t image = 0; image < run.images; ++image) {
                  std::fill_n(dx + image * g.src_image() + first * plane, (last - first) * plane,
                              0.0F);
                }
              }
              backward_channels(g, first, last, run.images, static_cast<const float*>(o[0]),
                                static_cast<const float*>(o[1]),
                                static_cast<float*>(o[3]) + omp_get_thread_num() * sums, dx);
            });
          })};
}

// Runs whole: sums of single images would cost two floats a weight.
KernelChoice choose_local_backward_weights(const Op& op, const SelectContext& context) {
  const LocalGeometry g = op.params_as<LocalParams>().geometry;
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}},
          .scratch = {floats(threads * g.n * g.taps())},
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            const auto* src = static_cast<const float*>(o[1]);
            parallel_for(g.locations(), threads, [&](std::int64_t location) {
              float* patches = static_cast<float*>(o[3]) + omp_get_thread_num() * g.n * g.taps();
              gather(g, location, g.n, src, patches);
              for (std::int64_t f = 0; f < g.filters; ++f) {
                float* dw = static_cast<float*>(o[2]) + (location * g.filters + f) * g.taps();
                for (std::int64_t first = 0; first < g.taps(); first += kStrip) {
                  const std::int64_t count = std::min(kStrip, g.taps() - first);
                  std::array<double, kStrip> sum{};
                  for (std::int64_t image = 0; image < g.n; ++image) {
                    const double d = dy[image * g.dst_image() + f * g.locations() + location];
                    const float* patch = patches + image * g.taps() + first;
                    for (std::int64_t i = 0; i < count; ++i)
                      sum[static_cast<std::size_t>(i)] += d * static_cast<double>(patch[i]);
                  }
                  for (std::int64_t i = 0; i < count; ++i) {
                    float& target = dw[first + i];
                    target = (run.subdivision == 0 ? 0.0F : target) +
                             static_cast<float>(sum[static_cast<std::size_t>(i)]);
                  }
                }
              }
            });
          })};
}

}  // namespace lantern::ops
