#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "ops/blocks.hpp"
#include "ops/blur/blur.hpp"
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
  const BlurGeometry& g = static_cast<const BlurParams&>(params).geometry;
  LANTERN_ASSERT((inputs[0].shape == Shape{g.n, g.c, g.ih, g.iw}),
                 "the source has the shape the op was made for");
  return {{Shape{g.n, g.c, g.oh(), g.ow()}, DType::kF32}};
}

double flops(const Graph& /*graph*/, const Op& op) {
  const BlurGeometry& g = op.params_as<BlurParams>().geometry;
  return 2.0 * static_cast<double>(g.n * g.c * g.oh() * g.ow()) *
         static_cast<double>(g.size() * g.size());
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kBlurBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

// Calls visit(cell of src, cell of dst, weight) for one channel block, output by output.
template <typename Visit>
void walk_plane(const BlurGeometry& g, Visit visit) {
  const std::int64_t oh = g.oh();
  const std::int64_t ow = g.ow();
  for (std::int64_t oy = 0; oy < oh; ++oy) {
    for (std::int64_t ox = 0; ox < ow; ++ox) {
      for (std::int64_t ky = 0; ky < g.size(); ++ky) {
        const std::int64_t y = oy * g.sh - g.pad() + ky;
        if (y < 0 || y >= g.ih) continue;
        for (std::int64_t kx = 0; kx < g.size(); ++kx) {
          const std::int64_t x = ox * g.sw - g.pad() + kx;
          if (x < 0 || x >= g.iw) continue;
          visit(y * g.iw + x, oy * ow + ox, static_cast<float>(g.weight(ky) * g.weight(kx)));
        }
      }
    }
  }
}

}  // namespace

std::string BlurParams::describe() const {
  return fmt::format("kind={} stride={}x{}",
                     geometry.kind == BlurKind::kBinomial ? "binomial" : "box", geometry.sh,
                     geometry.sw);
}

const graph::OpDef kBlurForward{
    .name = "blur", .infer = infer, .flops = flops, .gradient = gradient};
const graph::OpDef kBlurBackward{.name = "blur_backward", .flops = flops};

KernelChoice choose_blur_forward(const Op& op, const SelectContext& context) {
  const BlurGeometry g = op.params_as<BlurParams>().geometry;
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents in(context.shape(op.inputs[0]), layout.block);
  const BlockedExtents out(context.shape(op.outputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = in.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            with_block(layout.block, [&](auto b) {
              constexpr int kBlock = b();
              parallel_for(run.images * in.blocks, threads, [&](std::int64_t plane) {
                const float* src = static_cast<const float*>(o[0]) + plane * in.plane();
                float* dst = static_cast<float*>(o[1]) + plane * out.plane();
                std::fill_n(dst, out.plane(), 0.0F);
                walk_plane(g, [&](std::int64_t s, std::int64_t d, float weight) {
                  float* target = dst + d * kBlock;
                  store<kBlock>(target,
                                load<kBlock>(target) + weight * load<kBlock>(src + s * kBlock));
                });
              });
            });
          })};
}

KernelChoice choose_blur_backward(const Op& op, const SelectContext& context) {
  const BlurGeometry g = op.params_as<BlurParams>().geometry;
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const BlockedExtents in(context.shape(op.outputs[0]), layout.block);
  const BlockedExtents out(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = in.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            with_block(layout.block, [&](auto b) {
              constexpr int kBlock = b();
              parallel_for(run.images * in.blocks, threads, [&](std::int64_t plane) {
                const float* dy = static_cast<const float*>(o[0]) + plane * out.plane();
                float* dx = static_cast<float*>(o[1]) + plane * in.plane();
                if (!accumulate) std::fill_n(dx, in.plane(), 0.0F);
                walk_plane(g, [&](std::int64_t s, std::int64_t d, float weight) {
                  float* target = dx + s * kBlock;
                  store<kBlock>(target,
                                load<kBlock>(target) + weight * load<kBlock>(dy + d * kBlock));
                });
              });
            });
          })};
}

}  // namespace lantern::ops
