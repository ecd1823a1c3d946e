#include <fmt/format.h>

#include <algorithm>

#include "ops/avg_pool/avg_pool.hpp"
#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Graph;
using graph::Op;
using graph::OpDef;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer_global(const OpParams& /*params*/,
                                     std::span<const TensorType> inputs) {
  return {{Shape{inputs[0].shape.n(), inputs[0].shape.c(), 1, 1}, DType::kF32}};
}

std::vector<TensorType> infer_local(const OpParams& params, std::span<const TensorType> inputs) {
  const PoolGeometry& g = static_cast<const LocalAvgPoolParams&>(params).geometry;
  LANTERN_ASSERT((inputs[0].shape == Shape{g.n, g.c, g.ih, g.iw}),
                 "pooling source has the shape it was made for");
  return {{Shape{g.n, g.c, g.oh, g.ow}, DType::kF32}};
}

double flops_global(const Graph& graph, const Op& op) {
  return static_cast<double>(graph.type(op.inputs[0]).shape.elements());
}

double flops_local(const Graph& /*graph*/, const Op& op) {
  const PoolGeometry& g = op.params_as<LocalAvgPoolParams>().geometry;
  return static_cast<double>(g.n * g.c * g.oh * g.ow) * static_cast<double>(g.kh * g.kw);
}

template <const OpDef& kBackward>
void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

struct Span {
  std::int64_t begin, end;
  std::int64_t size() const { return std::max<std::int64_t>(0, end - begin); }
};
// Source rows (or columns) of an output position that exist.
Span cells(std::int64_t out, std::int64_t stride, std::int64_t pad, std::int64_t kernel,
           std::int64_t extent) {
  const std::int64_t start = out * stride - pad;
  return {std::max<std::int64_t>(0, start), std::min(start + kernel, extent)};
}

template <int B>
void local_forward(const PoolGeometry& g, const float* src, float* dst) {
  for (std::int64_t oy = 0; oy < g.oh; ++oy) {
    const Span ys = cells(oy, g.sh, g.ph, g.kh, g.ih);
    for (std::int64_t ox = 0; ox < g.ow; ++ox) {
      const Span xs = cells(ox, g.sw, g.pw, g.kw, g.iw);
      const std::int64_t count = ys.size() * xs.size();
      auto sum = splat<B>(0.0F);
      for (std::int64_t y = ys.begin; y < ys.end; ++y) {
        for (std::int64_t x = xs.begin; x < xs.end; ++x) sum += load<B>(src + (y * g.iw + x) * B);
      }
      if (count > 0) sum = sum / static_cast<float>(count);
      store<B>(dst + (oy * g.ow + ox) * B, sum);
    }
  }
}

template <int B>
void local_backward(const PoolGeometry& g, const float* diff_dst, float* diff_src,
                    bool accumulate) {
  if (!accumulate) std::fill_n(diff_src, g.ih * g.iw * B, 0.0F);
  for (std::int64_t oy = 0; oy < g.oh; ++oy) {
    const Span ys = cells(oy, g.sh, g.ph, g.kh, g.ih);
    for (std::int64_t ox = 0; ox < g.ow; ++ox) {
      const Span xs = cells(ox, g.sw, g.pw, g.kw, g.iw);
      const std::int64_t count = ys.size() * xs.size();
      if (count == 0) continue;
      const auto share = load<B>(diff_dst + (oy * g.ow + ox) * B) / static_cast<float>(count);
      for (std::int64_t y = ys.begin; y < ys.end; ++y) {
        for (std::int64_t x = xs.begin; x < xs.end; ++x) {
          float* target = diff_src + (y * g.iw + x) * B;
          store<B>(target, load<B>(target) + share);
        }
      }
    }
  }
}

}  // namespace

std::string LocalAvgPoolParams::describe() const {
  const PoolGeometry& g = geometry;
  return fmt::format("size={}x{} stride={}x{} pad={}x{}", g.kh, g.kw, g.sh, g.sw, g.ph, g.pw);
}

const OpDef kGlobalAvgPoolBackward{.name = "global_avg_pool_backward"};
const OpDef kGlobalAvgPoolForward{.name = "global_avg_pool",
                                  .infer = infer_global,
                                  .flops = flops_global,
                                  .gradient = gradient<kGlobalAvgPoolBackward>};
const OpDef kLocalAvgPoolBackward{.name = "local_avg_pool_backward"};
const OpDef kLocalAvgPoolForward{.name = "local_avg_pool",
                                 .infer = infer_local,
                                 .flops = flops_local,
                                 .gradient = gradient<kLocalAvgPoolBackward>};

KernelChoice choose_global_avg_pool_forward(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents in(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = in.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            with_block(layout.block, [&](auto b) {
              constexpr int kBlock = b();
              using Double = typename Vec<kBlock>::Double;
              using Float = typename Vec<kBlock>::Float;
              parallel_for(run.images * in.blocks, threads, [&](std::int64_t plane) {
                const float* src = static_cast<const float*>(o[0]) + plane * in.plane();
                Double sum = {};
                for (std::int64_t i = 0; i < in.plane(); i += kBlock) {
                  sum += __builtin_convertvector(load<kBlock>(src + i), Double);
                }
                sum = sum / static_cast<double>(in.spatial);
                store<kBlock>(static_cast<float*>(o[1]) + plane * kBlock,
                              __builtin_convertvector(sum, Float));
              });
            });
          })};
}

KernelChoice choose_global_avg_pool_backward(const Op& op, const SelectContext& context) {
  const bool accumulate = op.accumulates[0];
  const Layout layout =
      accumulate ? context.data_layout(op.outputs[0]) : Layout{.block = context.block};
  const BlockedExtents to(context.shape(op.outputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            with_block(layout.block, [&](auto b) {
              constexpr int kBlock = b();
              parallel_for(run.images * to.blocks, threads, [&](std::int64_t plane) {
                const auto share = load<kBlock>(static_cast<const float*>(o[0]) + plane * kBlock) /
                                   static_cast<float>(to.spatial);
                float* dst = static_cast<float*>(o[1]) + plane * to.plane();
                for (std::int64_t i = 0; i < to.plane(); i += kBlock) {
                  store<kBlock>(dst + i, accumulate ? load<kBlock>(dst + i) + share : share);
                }
              });
            });
          })};
}

KernelChoice choose_local_avg_pool_forward(const Op& op, const SelectContext& context) {
  const PoolGeometry g = op.params_as<LocalAvgPoolParams>().geometry;
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
              parallel_for(run.images * in.blocks, threads, [&](std::int64_t plane) {
                local_forward<b()>(g, static_cast<const float*>(o[0]) + plane * in.plane(),
                                   static_cast<float*>(o[1]) + plane * out.plane());
              });
            });
          })};
}

KernelChoice choose_local_avg_pool_backward(const Op& op, const SelectContext& context) {
  const PoolGeometry g = op.params_as<LocalAvgPoolParams>().geometry;
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const BlockedExtents from(context.shape(op.inputs[0]), layout.block);
  const BlockedExtents to(context.shape(op.outputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            with_block(layout.block, [&](auto b) {
              parallel_for(run.images * from.blocks, threads, [&](std::int64_t plane) {
                local_backward<b()>(g, static_cast<const float*>(o[0]) + plane * from.plane(),
                                    static_cast<float*>(o[1]) + plane * to.plane(), accumulate);
              });
            });
          })};
}

}  // namespace lantern::ops
