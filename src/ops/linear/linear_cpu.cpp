#include <algorithm>
#include <array>
#include <cstring>

#include "ops/blocks.hpp"
#include "ops/conv/bias_gradient_cpu.hpp"
#include "ops/conv/conv.hpp"
#include "ops/linear/linear.hpp"
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

std::int64_t values_per_image(const Shape& x) { return x.c() * x.h() * x.w(); }

std::vector<TensorType> infer(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  LANTERN_ASSERT(w.rank() == 2 && w[1] == values_per_image(x), "a row of weights fits the input");
  return {{Shape{x.n(), w[0], 1, 1}, DType::kF32}};
}

std::vector<TensorType> infer_same(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  return {inputs[0]};
}

double flops(const Graph& graph, const Op& op) {
  return 2.0 * static_cast<double>(graph.type(op.inputs[0]).shape.n()) *
         static_cast<double>(graph.type(op.inputs[1]).shape.elements());
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  const TensorId x = op.inputs[0];
  const TensorId weights = op.inputs[1];
  if (builder.wants(weights)) {
    builder.emit(kLinearBackwardWeights, op.params, {*dy, x}, {builder.target(weights)});
  }
  if (op.inputs.size() > 2 && builder.wants(op.inputs[2])) {
    builder.emit(kBiasGradient, op.params, {*dy}, {builder.target(op.inputs[2])});
  }
  if (builder.wants(x)) {
    builder.emit(kLinearBackwardData, op.params, {*dy, weights}, {builder.target(x)});
  }
}

void gradient_clamp(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kClampGradientBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

constexpr int kLanes = 16;
constexpr std::int64_t kTile = 4;     // images that share one pass over a row of weights
constexpr std::int64_t kStrip = 512;  // columns of weights that one job of a backward pass owns

// Products of one row of weights with T images; the sums run in kLanes fixed partial sums.
template <int T>
void dot_rows(const float* w, const float* x, std::int64_t in, float* sums) {
  std::array<typename Vec<kLanes>::Float, T> partial{};
  std::int64_t i = 0;
  for (; i + kLanes <= in; i += kLanes) {
    const auto row = load<kLanes>(w + i);
    for (int t = 0; t < T; ++t) {
      partial[static_cast<std::size_t>(t)] += row * load<kLanes>(x + t * in + i);
    }
  }
  for (int t = 0; t < T; ++t) {
    float sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += partial[static_cast<std::size_t>(t)][lane];
    for (std::int64_t k = i; k < in; ++k) sum += w[k] * x[t * in + k];
    sums[t] = sum;
  }
}

void forward_row(const float* w, const float* x, float bias, std::int64_t n, std::int64_t in,
                 std::int64_t out, float* y) {
  std::array<float, kTile> sums{};
  for (std::int64_t image = 0; image < n; image += kTile) {
    const std::int64_t count = std::min(kTile, n - image);
    // The arithmetic of an image does not depend on which tile it falls into.
    if (count == kTile) {
      dot_rows<kTile>(w, x + image * in, in, sums.data());
    } else {
      for (std::int64_t t = 0; t < count; ++t) {
        dot_rows<1>(w, x + (image + t) * in, in, sums.data() + t);
      }
    }
    for (std::int64_t t = 0; t < count; ++t) {
      y[(image + t) * out] = sums[static_cast<std::size_t>(t)] + bias;
    }
  }
}

}  // namespace

const graph::OpDef kLinearForward{
    .name = "linear", .infer = infer, .flops = flops, .gradient = gradient};
const graph::OpDef kLinearBackwardData{.name = "linear_backward_data", .flops = flops};
const graph::OpDef kLinearBackwardWeights{
    .name = "linear_backward_weights", .flops = [](const Graph& graph, const Op& op) {
      return 2.0 * static_cast<double>(graph.type(op.inputs[0]).shape.n()) *
             static_cast<double>(graph.type(op.outputs[0]).shape.elements());
    }};
const graph::OpDef kClampGradient{
    .name = "clamp_gradient", .infer = infer_same, .gradient = gradient_clamp};
const graph::OpDef kClampGradientBackward{.name = "clamp_gradient_backward"};

KernelChoice choose_linear_forward(const Op& op, const SelectContext& context) {
  const Shape x = context.shape(op.inputs[0]);
  const std::int64_t in = values_per_image(x);
  const std::int64_t out = context.shape(op.inputs[1])[0];
  const bool biased = op.inputs.size() > 2;
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = std::vector<Layout>(op.inputs.size()),
          .outputs = {Layout{}},
          .images = x.n(),
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* weights = static_cast<const float*>(o[1]);
            parallel_for(out, threads, [&](std::int64_t row) {
              forward_row(weights + row * in, static_cast<const float*>(o[0]),
                          biased ? static_cast<const float*>(o[2])[row] : 0.0F, run.images, in, out,
                          static_cast<float*>(o.back()) + row);
            });
          })};
}

KernelChoice choose_linear_backward_data(const Op& op, const SelectContext& context) {
  const bool accumulate = op.accumulates[0];
  const Shape shape = context.shape(op.outputs[0]);
  const std::int64_t in = values_per_image(shape);
  const std::int64_t out = context.shape(op.inputs[1])[0];
  // The source may lie in channel blocks that hold an earlier contribution: strips of plain order
  // are then scattered.
  const Layout layout = accumulate ? context.data_layout(op.outputs[0]) : Layout{};
  const BlockedExtents to(shape, layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            const auto* weights = static_cast<const float*>(o[1]);
            auto* dx = static_cast<float*>(o[2]);
            const std::int64_t strips = ceil_div(in, kStrip);
            parallel_for(strips, threads, [&](std::int64_t strip) {
              const std::int64_t first = strip * kStrip;
              const std::int64_t count = std::min(kStrip, in - first);
              for (std::int64_t image = 0; image < run.images; ++image) {
                std::array<float, kStrip> sum{};
                for (std::int64_t row = 0; row < out; ++row) {
                  const float d = dy[image * out + row];
                  const float* w = weights + row * in + first;
                  for (std::int64_t i = 0; i < count; ++i) {
                    sum[static_cast<std::size_t>(i)] += d * w[i];
                  }
                }
                for (std::int64_t i = 0; i < count; ++i) {
                  const std::int64_t c = (first + i) / to.spatial;
                  const std::int64_t s = (first + i) % to.spatial;
                  float& target = dx[to.offset(image, c / to.block) + s * to.block + c % to.block];
                  const float value = sum[static_cast<std::size_t>(i)];
                  target = accumulate ? target + value : value;
                }
              }
            });
          })};
}

// Runs whole: sums of single images would cost two floats a weight, and its operands are vectors.
KernelChoice choose_linear_backward_weights(const Op& op, const SelectContext& context) {
  const Shape x = context.shape(op.inputs[1]);
  const std::int64_t in = values_per_image(x);
  const std::int64_t out = context.shape(op.outputs[0])[0];
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}},
          .kernel = make_kernel([=, n = x.n()](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            const auto* values = static_cast<const float*>(o[1]);
            parallel_for(out, threads, [&](std::int64_t row) {
              float* dw = static_cast<float*>(o[2]) + row * in;
              for (std::int64_t first = 0; first < in; first += kStrip) {
                const std::int64_t count = std::min(kStrip, in - first);
                std::array<double, kStrip> sum{};
                for (std::int64_t image = 0; image < n; ++image) {
                  const double d = dy[image * out + row];
                  const float* source = values + image * in + first;
                  for (std::int64_t i = 0; i < count; ++i) {
                    sum[static_cast<std::size_t>(i)] += d * source[i];
                  }
                }
                for (std::int64_t i = 0; i < count; ++i) {
                  float& target = dw[first + i];
                  target = (run.subdivision == 0 ? 0.0F : target) +
                           static_cast<float>(sum[static_cast<std::size_t>(i)]);
                }
              }
            });
          })};
}

KernelChoice choose_clamp_gradient(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .may_alias = {{0, 0}},
          .images = e.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            if (o[0] != o[1])
              std::memcpy(
                  o[1], o[0],
                  static_cast<std::size_t>(e.with_images(run.images).elements()) * sizeof(float));
          })};
}

KernelChoice choose_clamp_gradient_backward(const Op& op, const SelectContext& context) {
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  KernelChoice choice{.name = "cpu", .inputs = {layout}, .outputs = {layout}, .images = e.n};
  if (!accumulate) choice.may_alias.push_back({0, 0});
  choice.kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
    const auto* dy = static_cast<const float*>(o[0]);
    auto* dx = static_cast<float*>(o[1]);
    parallel_ranges(e.with_images(run.images).elements(), threads,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const float d = std::clamp(dy[i], -1.0F, 1.0F);
                        dx[i] = accumulate ? dx[i] + d : d;
                      }
                    });
  });
  return choice;
}

}  // namespace lantern::ops
