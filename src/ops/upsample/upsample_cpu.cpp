#include <fmt/format.h>

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
  const auto& p = static_cast<const UpsampleParams&>(params);
  const Shape& in = inputs[0].shape;
  if (p.reduce) return {{Shape{in.n(), in.c(), in.h() / p.stride, in.w() / p.stride}, DType::kF32}};
  return {{Shape{in.n(), in.c(), in.h() * p.stride, in.w() * p.stride}, DType::kF32}};
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

KernelChoice choose(const Shape& from, const Shape& to, const Layout& layout,
                    const UpsampleParams& params, bool accumulate, int threads) {
  const BlockedExtents in(from, layout.block);
  const BlockedExtents out(to, layout.block);
  const bool growing = to.h() > from.h() || (to.h() == from.h() && !params.reduce);
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = in.n,
          .kernel = make_kernel([=, stride = params.stride, scale = params.scale](
                                    std::span<void* const> o, const RunContext& run) {
            with_block(layout.block, [&](auto b) {
              constexpr int kBlock = b();
              parallel_for(run.images * in.blocks, threads, [&](std::int64_t job) {
                const auto* src = static_cast<const float*>(o[0]) + job * in.plane();
                auto* dst = static_cast<float*>(o[1]) + job * out.plane();
                if (growing) {
                  enlarge<kBlock>(src, dst, from.h(), from.w(), to.h(), to.w(), stride, scale,
                                  accumulate);
                } else {
                  sum_blocks<kBlock>(src, dst, to.h(), to.w(), from.w(), stride, scale, accumulate);
                }
              });
            });
          })};
}

}  // namespace

std::string UpsampleParams::describe() const {
  return fmt::format("stride={}{} scale={}", stride, reduce ? " reduce" : "", scale);
}

const graph::OpDef kUpsampleForward{.name = "upsample", .infer = infer, .gradient = gradient};
const graph::OpDef kUpsampleBackward{.name = "upsample_backward"};

KernelChoice choose_upsample_forward(const Op& op, const SelectContext& context) {
  return choose(context.shape(op.inputs[0]), context.shape(op.outputs[0]),
                context.data_layout(op.inputs[0]), op.params_as<UpsampleParams>(), false,
                context.threads);
}

KernelChoice choose_upsample_backward(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.accumulates[0] ? op.outputs[0] : op.inputs[0]);
  return choose(context.shape(op.inputs[0]), context.shape(op.outputs[0]), layout,
                op.params_as<UpsampleParams>(), op.accumulates[0], context.threads);
}

}  // namespace lantern::ops
