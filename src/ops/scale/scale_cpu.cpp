#include <algorithm>

#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/scale/scale.hpp"
#include "ops/simd.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

Shape scale_shape(ScaleKind kind, const Shape& src) {
  if (kind == ScaleKind::kPerChannel) return Shape{src.n(), src.c(), 1, 1};
  if (kind == ScaleKind::kPerPixel) return Shape{src.n(), 1, src.h(), src.w()};
  return src;
}

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const ScaleKind kind = static_cast<const ScaleParams&>(params).kind;
  LANTERN_ASSERT(inputs[1].shape == scale_shape(kind, inputs[0].shape),
                 "the factors have the shape of their kind");
  return {inputs[0]};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  const TensorId src = op.inputs[0];
  const TensorId scale = op.inputs[1];
  if (builder.wants(scale)) {
    builder.emit(kScaleBackwardScale, op.params, {*dy, src}, {builder.target(scale)});
  }
  if (builder.wants(src)) {
    builder.emit(kScaleBackwardSource, op.params, {*dy, scale}, {builder.target(src)});
  }
}

// out (+)= a * scale, for forward and for the gradient of src.
template <int B>
void multiply(ScaleKind kind, const BlockedExtents& e, const BlockedExtents& factors,
              const float* a, const float* scale, float* out, bool accumulate, int threads) {
  parallel_for(e.n * e.blocks, threads, [&](std::int64_t job) {
    const std::int64_t image = job / e.blocks;
    const std::int64_t cb = job % e.blocks;
    const float* in = a + job * e.plane();
    float* dst = out + job * e.plane();
    // Per pixel: one channel, lane 0 of its only block.
    const float* own = scale + factors.offset(image, kind == ScaleKind::kPerPixel ? 0 : cb);
    const auto channel = kind == ScaleKind::kPerChannel ? load<B>(own) : splat<B>(0.0F);
    for (std::int64_t i = 0; i < e.plane(); i += B) {
      const auto factor = kind == ScaleKind::kPerChannel ? channel
                          : kind == ScaleKind::kPerPixel ? splat<B>(own[i])
                                                         : load<B>(own + i);
      auto value = load<B>(in + i) * factor;
      if (accumulate) value += load<B>(dst + i);
      store<B>(dst + i, value);
    }
  });
}

template <int B>
void per_channel(const BlockedExtents& e, const float* dy, const float* src, float* out,
                 bool accumulate, int threads) {
  using Double = typename Vec<B>::Double;
  using Float = typename Vec<B>::Float;
  parallel_for(e.n * e.blocks, threads, [&](std::int64_t job) {
    Double sum = {};
    for (std::int64_t i = job * e.plane(); i < (job + 1) * e.plane(); i += B) {
      sum += __builtin_convertvector(load<B>(dy + i) * load<B>(src + i), Double);
    }
    Float value = __builtin_convertvector(sum, Float);
    if (accumulate) value += load<B>(out + job * B);
    store<B>(out + job * B, value);
  });
}

// The channels of a pixel are summed lane by lane in double, then over the lanes.
template <int B>
void per_pixel(const BlockedExtents& e, const float* dy, const float* src, float* out,
               bool accumulate, int threads) {
  using Double = typename Vec<B>::Double;
  parallel_for(e.n, threads, [&](std::int64_t image) {
    for (std::int64_t s = 0; s < e.spatial; ++s) {
      Double sums = {};
      for (std::int64_t cb = 0; cb < e.blocks; ++cb) {
        const std::int64_t at = e.offset(image, cb) + s * B;
        sums += __builtin_convertvector(load<B>(dy + at) * load<B>(src + at), Double);
      }
      double sum = 0;
      for (int lane = 0; lane < B; ++lane) sum += sums[lane];
      auto value = splat<B>(0.0F);
      value[0] = static_cast<float>(sum);
      float* target = out + (image * e.spatial + s) * B;
      if (accumulate) value += load<B>(target);
      store<B>(target, value);
    }
  });
}

}  // namespace

std::string ScaleParams::describe() const {
  switch (kind) {
    case ScaleKind::kPerChannel:
      return "per=channel";
    case ScaleKind::kPerPixel:
      return "per=pixel";
    case ScaleKind::kElement:
      return "per=element";
  }
  return {};
}

const graph::OpDef kScaleForward{.name = "scale", .infer = infer, .gradient = gradient};
const graph::OpDef kScaleBackwardSource{.name = "scale_backward_source"};
const graph::OpDef kScaleBackwardScale{.name = "scale_backward_scale"};

namespace {
KernelChoice choose_multiply(const Op& op, const SelectContext& context, const Layout& layout) {
  const ScaleKind kind = op.params_as<ScaleParams>().kind;
  const BlockedExtents e(context.shape(op.outputs[0]), layout.block);
  const BlockedExtents factors(context.shape(op.inputs[1]), layout.block);
  const bool accumulate = op.accumulates[0];
  const int threads = context.threads;
  KernelChoice choice{
      .name = "cpu", .inputs = {layout, layout}, .outputs = {layout}, .images = e.n};
  if (!accumulate) choice.may_alias.push_back({0, 0});
  choice.kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
    with_block(layout.block, [&](auto b) {
      multiply<b()>(kind, e.with_images(run.images), factors, static_cast<const float*>(o[0]),
                    static_cast<const float*>(o[1]), static_cast<float*>(o[2]), accumulate,
                    threads);
    });
  });
  return choice;
}
}  // namespace

KernelChoice choose_scale_forward(const Op& op, const SelectContext& context) {
  return choose_multiply(op, context, context.data_layout(op.inputs[0]));
}

KernelChoice choose_scale_backward_source(const Op& op, const SelectContext& context) {
  return choose_multiply(op, context,
                         context.data_layout(op.accumulates[0] ? op.outputs[0] : op.inputs[0]));
}

KernelChoice choose_scale_backward_scale(const Op& op, const SelectContext& context) {
  const ScaleKind kind = op.params_as<ScaleParams>().kind;
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[1]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  if (kind == ScaleKind::kElement) return choose_multiply(op, context, layout);
  return {.name = "cpu",
          .inputs = {layout, layout},
          .outputs = {layout},
          .images = e.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            const auto* src = static_cast<const float*>(o[1]);
            auto* out = static_cast<float*>(o[2]);
            const BlockedExtents part = e.with_images(run.images);
            with_block(layout.block, [&](auto b) {
              if (kind == ScaleKind::kPerChannel) {
                per_channel<b()>(part, dy, src, out, accumulate, threads);
              } else {
                per_pixel<b()>(part, dy, src, out, accumulate, threads);
              }
            });
          })};
}

}  // namespace lantern::ops
