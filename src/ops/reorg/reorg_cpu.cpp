#include <fmt/format.h>

#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/reorg/reorg.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const ReorgParams&>(params);
  const Shape& in = inputs[0].shape;
  const std::int64_t s = p.stride;
  if (p.kind == ReorgKind::kDepthToSpace) {
    LANTERN_ASSERT(in.c() % (s * s) == 0, "channels are whole blocks");
    return {{Shape{in.n(), in.c() / (s * s), in.h() * s, in.w() * s}, DType::kF32}};
  }
  LANTERN_ASSERT(in.h() % s == 0 && in.w() % s == 0, "the map is whole blocks");
  LANTERN_ASSERT(p.kind == ReorgKind::kSpaceToDepth || in.c() % (s * s) == 0,
                 "channels are whole blocks");
  return {{Shape{in.n(), in.c() * s * s, in.h() / s, in.w() / s}, DType::kF32}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kReorgBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

std::int64_t offset_of(const BlockedExtents& e, std::int64_t image, std::int64_t flat) {
  const std::int64_t c = flat / e.spatial;
  return e.offset(image, c / e.block) + flat % e.spatial * e.block + c % e.block;
}

void zero_padding(const BlockedExtents& e, std::int64_t image, float* data) {
  const int used = e.lanes_used(e.blocks - 1);
  if (used == e.block) return;
  float* plane = data + e.offset(image, e.blocks - 1);
  for (std::int64_t s = 0; s < e.spatial; ++s) {
    for (int lane = used; lane < e.block; ++lane) plane[s * e.block + lane] = 0.0F;
  }
}

// Visits (offset in dst, offset in src) of every cell of an image.
template <typename Visit>
void for_each_cell(const ReorgParams& p, const Shape& src, const BlockedExtents& from,
                   const BlockedExtents& to, std::int64_t image, Visit visit) {
  for (std::int64_t i = 0; i < to.c * to.spatial; ++i) {
    const std::int64_t source = ref::reorg_source(p.kind, src.c(), src.h(), src.w(), p.stride, i);
    visit(offset_of(to, image, i), offset_of(from, image, source));
  }
}

}  // namespace

std::string ReorgParams::describe() const {
  const char* name = kind == ReorgKind::kReorg          ? "historic"
                     : kind == ReorgKind::kSpaceToDepth ? "space_to_depth"
                                                        : "depth_to_space";
  return fmt::format("kind={} stride={}", name, stride);
}

const graph::OpDef kReorgForward{.name = "reorg", .infer = infer, .gradient = gradient};
const graph::OpDef kReorgBackward{.name = "reorg_backward"};

KernelChoice choose_reorg_forward(const Op& op, const SelectContext& context) {
  const ReorgParams params = op.params_as<ReorgParams>();
  const Layout layout = context.data_layout(op.inputs[0]);
  const Shape src = context.shape(op.inputs[0]);
  const BlockedExtents from(src, layout.block);
  const BlockedExtents to(context.shape(op.outputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* in = static_cast<const float*>(o[0]);
            auto* out = static_cast<float*>(o[1]);
            parallel_for(run.images, threads, [&](std::int64_t image) {
              for_each_cell(params, src, from, to, image,
                            [&](std::int64_t d, std::int64_t s) { out[d] = in[s]; });
              zero_padding(to, image, out);
            });
          })};
}

KernelChoice choose_reorg_backward(const Op& op, const SelectContext& context) {
  const ReorgParams params = op.params_as<ReorgParams>();
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const Shape src = context.shape(op.outputs[0]);
  const BlockedExtents from(src, layout.block);
  const BlockedExtents to(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            auto* dx = static_cast<float*>(o[1]);
            parallel_for(run.images, threads, [&](std::int64_t image) {
              for_each_cell(params, src, from, to, image, [&](std::int64_t d, std::int64_t s) {
                dx[s] = accumulate ? dx[s] + dy[d] : dy[d];
              });
              if (!accumulate) zero_padding(from, image, dx);
            });
          })};
}

}  // namespace lantern::ops
