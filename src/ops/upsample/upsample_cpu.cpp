#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"
#include "ops/upsample/upsample.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  return {{resized(static_cast<const UpsampleParams&>(params), inputs[0].shape), DType::kF32}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kUpsampleBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

// large[y][x] (+)= scale * small[y / s][x / s]; cells of `large` beyond the blocks get zero.
template <int B>
void enlarge(const float* small, float* large, std::int64_t sh, std::int64_t sw, std::int64_t lh,
             std::int64_t lw, std::int64_t stride, float scale, bool accumulate) {
  for (std::int64_t y = 0; y < lh; ++y) {
    for (std::int64_t x = 0; x < lw; ++x) {
      const bool inside = y / stride < sh && x / stride < sw;
      auto value =
          inside ? load<B>(small + (y / stride * sw + x / stride) * B) * scale : splat<B>(0.0F);
      float* target = large + (y * lw + x) * B;
      if (accumulate) value += load<B>(target);
      store<B>(target, value);
    }
  }
}

// small[j][i] (+)= scale * sum of the s x s block of large.
template <int B>
void sum_blocks(const float* large, float* small, std::int64_t sh, std::int64_t sw, std::int64_t lw,
                std::int64_t stride, float scale, bool accumulate) {
  for (std::int64_t j = 0; j < sh; ++j) {
    for (std::int64_t i = 0; i < sw; ++i) {
      auto sum = splat<B>(0.0F);
      for (std::int64_t y = j * stride; y < (j + 1) * stride; ++y) {
        for (std::int64_t x = i * stride; x < (i + 1) * stride; ++x)
          sum += load<B>(large + (y * lw + x) * B);
      }
      sum *= scale;
      float* target = small + (j * sw + i) * B;
      if (accumulate) sum += load<B>(target);
      store<B>(target, sum);
    }
  }
}

// One side of the resizing: whole tensors, or a slice of channels of wider ones.
struct Side {
  std::int64_t h, w;
  std::int64_t image_stride;  // floats
};

// dst (+)= the resized src, `blocks` channel blocks an image.
void resize(const UpsampleParams& params, const Side& from, const float* src, const Side& to,
            float* dst, std::int64_t blocks, int block, std::int64_t images, bool accumulate,
            int threads) {
  const bool growing = to.h > from.h || (to.h == from.h && !params.reduce);
  with_block(block, [&](auto b) {
    constexpr int kBlock = b();
    parallel_for(images * blocks, threads, [&](std::int64_t job) {
      const std::int64_t image = job / blocks;
      const std::int64_t plane = job % blocks;
      const float* in = src + image * from.image_stride + plane * from.h * from.w * kBlock;
      float* out = dst + image * to.image_stride + plane * to.h * to.w * kBlock;
      if (growing) {
        enlarge<kBlock>(in, out, from.h, from.w, to.h, to.w, params.stride, params.scale,
                        accumulate);
      } else {
        sum_blocks<kBlock>(in, out, to.h, to.w, from.w, params.stride, params.scale, accumulate);
      }
    });
  });
}

Side side_of(const Shape& shape, int block) {
  const BlockedExtents e(shape, block);
  return {shape.h(), shape.w(), e.blocks * e.plane()};
}

}  // namespace

Shape resized(const UpsampleParams& p, const Shape& in) {
  if (p.reduce) return {in.n(), in.c(), in.h() / p.stride, in.w() / p.stride};
  return {in.n(), in.c(), in.h() * p.stride, in.w() * p.stride};
}

std::string UpsampleParams::describe() const {
  return fmt::format("stride={}{} scale={}{}", stride, reduce ? " reduce" : "", scale,
                     gradient_first > 0 ? fmt::format(" from={}", gradient_first) : "");
}

const graph::OpDef kUpsampleForward{.name = "upsample", .infer = infer, .gradient = gradient};
const graph::OpDef kUpsampleBackward{.name = "upsample_backward"};

void upsample_into(const UpsampleParams& params, const Shape& from, const float* src, float* dst,
                   std::int64_t dst_stride, int block, std::int64_t images, int threads) {
  Side to = side_of(resized(params, from), block);
  to.image_stride = dst_stride;
  resize(params, side_of(from, block), src, to, dst, ceil_div(from.c(), block), block, images,
         false, threads);
}

KernelChoice choose_upsample_forward(const Op& op, const SelectContext& context) {
  const Shape from = context.shape(op.inputs[0]);
  const Layout layout = context.data_layout(op.inputs[0]);
  const std::int64_t to_stride = side_of(context.shape(op.outputs[0]), layout.block).image_stride;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = from.n(),
          .kernel = make_kernel(
              [=, params = op.params_as<UpsampleParams>(), block = layout.block,
               threads = context.threads](std::span<void* const> o, const RunContext& run) {
                upsample_into(params, from, static_cast<const float*>(o[0]),
                              static_cast<float*>(o[1]), to_stride, block, run.images, threads);
              })};
}

KernelChoice choose_upsample_backward(const Op& op, const SelectContext& context) {
  const auto& params = op.params_as<UpsampleParams>();
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const Shape& to = context.shape(op.outputs[0]);
  const Side dy = side_of(context.shape(op.inputs[0]), layout.block);
  LANTERN_ASSERT(params.gradient_first % layout.block == 0, "a slice begins with a channel block");
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = to.n(),
          .kernel = make_kernel(
              [=, dx = side_of(to, layout.block), blocks = ceil_div(to.c(), layout.block),
               block = layout.block,
               threads = context.threads](std::span<void* const> o, const RunContext& run) {
                const float* gradient =
                    static_cast<const float*>(o[0]) + params.gradient_first * dy.h * dy.w;
                resize(params, dy, gradient, dx, static_cast<float*>(o[1]), blocks, block,
                       run.images, accumulate, threads);
              })};
}

}  // namespace lantern::ops
