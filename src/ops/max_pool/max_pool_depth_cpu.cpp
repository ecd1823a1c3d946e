#include <fmt/format.h>

#include <algorithm>

#include "ops/blocks.hpp"
#include "ops/max_pool/max_pool_depth.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const DepthPoolParams&>(params);
  const Shape& in = inputs[0].shape;
  LANTERN_ASSERT(p.out_channels >= 1 && p.out_channels <= in.c(), "every output has a channel");
  const Shape out{in.n(), p.out_channels, in.h(), in.w()};
  if (!p.keeps_index) return {{out, DType::kF32}};
  return {{out, DType::kF32}, {out, DType::kI32}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kDepthPoolBackward, op.params, {*dy, op.outputs[1]}, {builder.target(op.inputs[0])});
}

}  // namespace

std::string DepthPoolParams::describe() const {
  return fmt::format("out_channels={}", out_channels);
}

const graph::OpDef kDepthPoolForward{
    .name = "max_pool_depth", .infer = infer, .gradient = gradient};
const graph::OpDef kDepthPoolBackward{.name = "max_pool_depth_backward"};

KernelChoice choose_depth_pool_forward(const Op& op, const SelectContext& context) {
  const bool keeps = op.params_as<DepthPoolParams>().keeps_index;
  const BlockedExtents in(context.shape(op.inputs[0]), 1);
  const BlockedExtents out(context.shape(op.outputs[0]), 1);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}},
          .outputs = std::vector<Layout>(op.outputs.size()),
          .images = in.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images * out.c, threads, [&](std::int64_t plane) {
              const float* src = static_cast<const float*>(o[0]) +
                                 (plane / out.c * in.c + plane % out.c) * in.spatial;
              float* dst = static_cast<float*>(o[1]) + plane * out.spatial;
              auto* index =
                  keeps ? static_cast<std::int32_t*>(o[2]) + plane * out.spatial : nullptr;
              std::copy_n(src, out.spatial, dst);
              if (keeps) std::fill_n(index, out.spatial, 0);
              std::int32_t step = 1;
              for (std::int64_t c = plane % out.c + out.c; c < in.c; c += out.c, ++step) {
                const float* other = src + step * out.c * in.spatial;
                for (std::int64_t s = 0; s < out.spatial; ++s) {
                  if (!(other[s] > dst[s])) continue;
                  dst[s] = other[s];
                  if (keeps) index[s] = step;
                }
              }
            });
          })};
}

KernelChoice choose_depth_pool_backward(const Op& op, const SelectContext& context) {
  const bool accumulate = op.accumulates[0];
  const Layout layout = accumulate ? context.data_layout(op.outputs[0]) : Layout{};
  const BlockedExtents to(context.shape(op.outputs[0]), layout.block);
  const BlockedExtents from(context.shape(op.inputs[0]), 1);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            const auto* index = static_cast<const std::int32_t*>(o[1]);
            auto* dx = static_cast<float*>(o[2]);
            parallel_for(run.images, threads, [&](std::int64_t image) {
              if (!accumulate) {
                std::fill_n(dx + to.offset(image, 0), to.blocks * to.plane(), 0.0F);
              }
              for (std::int64_t i = 0; i < from.c * from.spatial; ++i) {
                const std::int64_t at = image * from.c * from.spatial + i;
                const std::int64_t c = i / from.spatial + index[at] * from.c;
                const std::int64_t s = i % from.spatial;
                dx[to.offset(image, c / to.block) + s * to.block + c % to.block] += dy[at];
              }
            });
          })};
}

}  // namespace lantern::ops
