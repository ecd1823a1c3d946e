#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "ops/parallel.hpp"
#include "ops/sequence/sequence.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer_slice(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const ImageRangeParams&>(params);
  Shape out = inputs[0].shape;
  LANTERN_ASSERT(out.n() == p.all && p.first + p.count <= p.all, "the range lies in the images");
  out.set(0, p.count);
  return {{out, DType::kF32}};
}

void gradient_slice(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kPlaceImages, op.params, {*dy}, {builder.target(op.inputs[0])});
}

std::vector<TensorType> infer_join(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  Shape out = inputs[0].shape;
  for (const TensorType& input : inputs)
    LANTERN_ASSERT(input.shape == out, "joined time steps have equal shapes");
  out.set(0, out.n() * static_cast<std::int64_t>(inputs.size()));
  return {{out, DType::kF32}};
}

void gradient_join(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  const std::int64_t all = builder.graph().type(op.outputs[0]).shape.n();
  const std::int64_t count = all / static_cast<std::int64_t>(op.inputs.size());
  std::int64_t first = 0;
  for (const TensorId input : op.inputs) {
    if (builder.wants(input)) {
      builder.emit(kSliceImages, std::make_shared<const ImageRangeParams>(first, count, all), {*dy},
                   {builder.target(input)});
    }
    first += count;
  }
}

std::int64_t floats_per_image(const Layout& layout, const Shape& shape) {
  return layout.bytes(shape, DType::kF32) / static_cast<Bytes>(sizeof(float)) / shape.n();
}

void copy(const float* src, float* dst, std::int64_t count, bool accumulate, int threads) {
  parallel_ranges(count, threads, [&](std::int64_t begin, std::int64_t end) {
    if (accumulate) {
      for (std::int64_t i = begin; i < end; ++i) dst[i] += src[i];
    } else {
      std::memcpy(dst + begin, src + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
    }
  });
}

}  // namespace

std::string ImageRangeParams::describe() const {
  return fmt::format("images={}+{} of={}", first, count, all);
}

const graph::OpDef kSliceImages{
    .name = "slice_images", .infer = infer_slice, .gradient = gradient_slice};
const graph::OpDef kPlaceImages{.name = "place_images"};
const graph::OpDef kJoinImages{
    .name = "join_images", .infer = infer_join, .gradient = gradient_join};

KernelChoice choose_slice_images(const Op& op, const SelectContext& context) {
  const auto& p = op.params_as<ImageRangeParams>();
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const std::int64_t image = floats_per_image(layout, context.shape(op.inputs[0]));
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .kernel =
              make_kernel([=, skip = p.first * image, count = p.count * image,
                           threads = context.threads](std::span<void* const> o, const RunContext&) {
                copy(static_cast<const float*>(o[0]) + skip, static_cast<float*>(o[1]), count,
                     accumulate, threads);
              })};
}

KernelChoice choose_place_images(const Op& op, const SelectContext& context) {
  const auto& p = op.params_as<ImageRangeParams>();
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const std::int64_t image = floats_per_image(layout, context.shape(op.outputs[0]));
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .kernel =
              make_kernel([=, skip = p.first * image, count = p.count * image, all = p.all * image,
                           threads = context.threads](std::span<void* const> o, const RunContext&) {
                auto* dst = static_cast<float*>(o[1]);
                if (!accumulate) {
                  std::fill(dst, dst + skip, 0.0F);
                  std::fill(dst + skip + count, dst + all, 0.0F);
                }
                copy(static_cast<const float*>(o[0]), dst + skip, count, accumulate, threads);
              })};
}

KernelChoice choose_join_images(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const Shape& part = context.shape(op.inputs[0]);
  const std::int64_t count = floats_per_image(layout, part) * part.n();
  const std::size_t inputs = op.inputs.size();
  return {.name = "cpu",
          .inputs = std::vector<Layout>(inputs, layout),
          .outputs = {layout},
          .kernel = make_kernel(
              [=, threads = context.threads](std::span<void* const> o, const RunContext&) {
                auto* dst = static_cast<float*>(o[inputs]);
                for (std::size_t i = 0; i < inputs; ++i) {
                  copy(static_cast<const float*>(o[i]), dst + static_cast<std::int64_t>(i) * count,
                       count, false, threads);
                }
              })};
}

}  // namespace lantern::ops
