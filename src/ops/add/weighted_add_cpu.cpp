#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/add/add_pairs.hpp"
#include "ops/add/weighted_add.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

constexpr auto kFloor = static_cast<float>(ref::kAddReluFloor);

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const WeightedAddParams&>(params);
  const auto count = static_cast<std::int64_t>(inputs.size()) - 1;
  LANTERN_ASSERT((inputs[0].shape == Shape{count * (p.per_channel ? inputs[1].shape.c() : 1)}),
                 "every input has its weights");
  return {inputs[1]};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  const auto& params = op.params_as<WeightedAddParams>();
  const TensorId weights = op.inputs[0];
  if (builder.wants(weights)) {
    std::vector<TensorId> inputs{*dy};
    inputs.insert(inputs.end(), op.inputs.begin(), op.inputs.end());
    builder.emit(kWeightedAddBackwardWeights, op.params, inputs, {builder.target(weights)});
  }
  const auto count = static_cast<std::int64_t>(op.inputs.size()) - 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const TensorId input = op.inputs[static_cast<std::size_t>(i) + 1];
    if (!builder.wants(input)) continue;
    builder.emit(kWeightedAddBackwardSource,
                 std::make_shared<const WeightedAddSourceParams>(params, i, count), {*dy, weights},
                 {builder.target(input)});
  }
}

// How the weights of `inputs` inputs divide into independent sets: set k holds weights k, k + sets,
// k + 2 sets, ...
struct Normalization {
  AddNormalization kind;
  std::int64_t inputs, sets;

  // Sum of the denominator; `largest` receives the first largest raw weight (its input).
  double denominator(const float* raw, std::int64_t set, std::int64_t& largest) const {
    largest = 0;
    for (std::int64_t i = 1; i < inputs; ++i) {
      if (raw[i * sets + set] > raw[largest * sets + set]) largest = i;
    }
    if (kind == AddNormalization::kNone) return 1;
    double sum = ref::kAddEpsilon;
    for (std::int64_t i = 0; i < inputs; ++i) sum += part(raw, set, i, largest);
    return sum;
  }
  double part(const float* raw, std::int64_t set, std::int64_t i, std::int64_t largest) const {
    const float v = raw[i * sets + set];
    if (kind == AddNormalization::kNone) return v;
    if (kind == AddNormalization::kRelu) return std::max(v, kFloor);
    return std::exp(static_cast<double>(v) - static_cast<double>(raw[largest * sets + set]));
  }
  // weights [inputs * sets] that multiply the inputs, from the raw ones.
  void apply(const float* raw, float* weights) const {
    for (std::int64_t set = 0; set < sets; ++set) {
      std::int64_t largest = 0;
      const double sum = denominator(raw, set, largest);
      for (std::int64_t i = 0; i < inputs; ++i) {
        weights[i * sets + set] = static_cast<float>(part(raw, set, i, largest) / sum);
      }
    }
  }
  // The gradient of set `set` through the normalisation, from G_i = sum of diff_dst * x_i; add(i,
  // value).
  template <typename Add>
  void gradient(const float* raw, const double* products, std::int64_t set, Add add) const {
    std::int64_t largest = 0;
    const double sum = denominator(raw, set, largest);
    double dot = 0;
    for (std::int64_t i = 0; i < inputs; ++i) {
      dot += part(raw, set, i, largest) / sum * products[i * sets + set];
    }
    for (std::int64_t i = 0; i < inputs; ++i) {
      const double g = products[i * sets + set];
      double value = g;
      if (kind == AddNormalization::kSoftmax) {
        value = part(raw, set, i, largest) / sum * (g - dot);
        // The subtracted maximum does not cancel against the 1e-4.
        if (i == largest) value -= ref::kAddEpsilon / sum * dot;
      } else if (kind == AddNormalization::kRelu) {
        value = raw[i * sets + set] > kFloor ? (g - dot) / sum : 0;
      }
      add(i * sets + set, value);
    }
  }
};

Normalization normalization_of(const WeightedAddParams& params, std::int64_t inputs,
                               const Shape& result) {
  return {params.normalization, inputs, params.per_channel ? result.c() : 1};
}

Bytes weight_bytes(const Normalization& n) {
  return n.inputs * n.sets * static_cast<Bytes>(sizeof(float));
}

}  // namespace

std::string WeightedAddParams::describe() const {
  const char* name = normalization == AddNormalization::kNone   ? "none"
                     : normalization == AddNormalization::kRelu ? "relu"
                                                                : "softmax";
  return fmt::format("normalization={}{}", name, per_channel ? " per_channel" : "");
}
std::string WeightedAddSourceParams::describe() const {
  return fmt::format("{} input={}/{}", add.describe(), index, inputs);
}

const graph::OpDef kWeightedAddForward{
    .name = "weighted_add", .infer = infer, .gradient = gradient};
const graph::OpDef kWeightedAddBackwardSource{.name = "weighted_add_backward_source"};
const graph::OpDef kWeightedAddBackwardWeights{.name = "weighted_add_backward_weights"};

KernelChoice choose_weighted_add_forward(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[1]);
  const Shape result = context.shape(op.outputs[0]);
  const auto inputs = static_cast<std::int64_t>(op.inputs.size()) - 1;
  const Normalization normalization =
      normalization_of(op.params_as<WeightedAddParams>(), inputs, result);
  const BlockedExtents to(result, layout.block);
  const int threads = context.threads;
  std::vector<Shape> shapes;
  KernelChoice choice{.name = "cpu",
                      .inputs = {Layout{}},
                      .outputs = {layout},
                      .scratch = {weight_bytes(normalization)},
                      .images = to.n};
  for (std::int64_t i = 0; i < inputs; ++i) {
    shapes.push_back(context.shape(op.inputs[static_cast<std::size_t>(i) + 1]));
    choice.inputs.push_back(layout);
  }
  choice.kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
    auto* dst = static_cast<float*>(o[shapes.size() + 1]);
    auto* weights = static_cast<float*>(o[shapes.size() + 2]);
    normalization.apply(static_cast<const float*>(o[0]), weights);
    parallel_for(run.images, threads, [&](std::int64_t image) {
      std::fill_n(dst + to.offset(image, 0), to.blocks * to.plane(), 0.0F);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto* src = static_cast<const float*>(o[i + 1]);
        const float* w = weights + static_cast<std::int64_t>(i) * normalization.sets;
        for_each_add_pair(result, shapes[i], layout.block, image,
                          [&](std::int64_t c, std::int64_t a, std::int64_t b) {
                            dst[a] += w[normalization.sets > 1 ? c : 0] * src[b];
                          });
      }
    });
  });
  return choice;
}

KernelChoice choose_weighted_add_backward_source(const Op& op, const SelectContext& context) {
  const auto& params = op.params_as<WeightedAddSourceParams>();
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const Shape result = context.shape(op.inputs[0]);
  const Shape source = context.shape(op.outputs[0]);
  const Normalization normalization = normalization_of(params.add, params.inputs, result);
  const BlockedExtents to(source, layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout, Layout{}},
          .outputs = {layout},
          .scratch = {weight_bytes(normalization)},
          .images = to.n,
          .kernel = make_kernel(
              [=, index = params.index](std::span<void* const> o, const RunContext& run) {
                const auto* dy = static_cast<const float*>(o[0]);
                auto* dx = static_cast<float*>(o[2]);
                auto* weights = static_cast<float*>(o[3]);
                normalization.apply(static_cast<const float*>(o[1]), weights);
                const float* w = weights + index * normalization.sets;
                parallel_for(run.images, threads, [&](std::int64_t image) {
                  if (!accumulate) {
                    std::fill_n(dx + to.offset(image, 0), to.blocks * to.plane(), 0.0F);
                  }
                  for_each_add_pair(result, source, layout.block, image,
                                    [&](std::int64_t c, std::int64_t a, std::int64_t b) {
                                      dx[b] += w[normalization.sets > 1 ? c : 0] * dy[a];
                                    });
                });
              })};
}

KernelChoice choose_weighted_add_backward_weights(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[2]);
  const Shape result = context.shape(op.inputs[0]);
  const auto inputs = static_cast<std::int64_t>(op.inputs.size()) - 2;
  const Normalization normalization =
      normalization_of(op.params_as<WeightedAddParams>(), inputs, result);
  const std::int64_t count = inputs * normalization.sets;
  const int threads = context.threads;
  std::vector<Shape> shapes;
  // Products of one image, then their sum over the images behind the last.
  KernelChoice choice{.name = "cpu",
                      .inputs = {layout, Layout{}},
                      .outputs = {Layout{}},
                      .scratch = {(result.n() + 1) * count * static_cast<Bytes>(sizeof(double))},
                      .images = result.n(),
                      .carries = true};
  for (std::int64_t i = 0; i < inputs; ++i) {
    shapes.push_back(context.shape(op.inputs[static_cast<std::size_t>(i) + 2]));
    choice.inputs.push_back(layout);
  }
  choice.kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
    const auto* dy = static_cast<const float*>(o[0]);
    auto* target = static_cast<float*>(o[shapes.size() + 2]);
    auto* partial = static_cast<double*>(o[shapes.size() + 3]);
    parallel_for(run.images, threads, [&](std::int64_t image) {
      double* own = partial + (run.first_image + image) * count;
      std::fill_n(own, count, 0.0);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto* src = static_cast<const float*>(o[i + 2]);
        double* sums = own + static_cast<std::int64_t>(i) * normalization.sets;
        for_each_add_pair(result, shapes[i], layout.block, image,
                          [&](std::int64_t c, std::int64_t a, std::int64_t b) {
                            sums[normalization.sets > 1 ? c : 0] +=
                                static_cast<double>(dy[a]) * static_cast<double>(src[b]);
                          });
      }
    });
    if (!run.is_last()) return;
    double* total = partial + result.n() * count;
    std::fill_n(total, count, 0.0);
    for (std::int64_t image = 0; image < result.n(); ++image) {
      for (std::int64_t k = 0; k < count; ++k) total[k] += partial[image * count + k];
    }
    for (std::int64_t set = 0; set < normalization.sets; ++set) {
      normalization.gradient(
          static_cast<const float*>(o[1]), total, set, [&](std::int64_t k, double value) {
            target[k] = (run.subdivision == 0 ? 0.0F : target[k]) + static_cast<float>(value);
          });
    }
  });
  return choice;
}

}  // namespace lantern::ops
