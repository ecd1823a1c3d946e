#include "ops/max_pool/max_pool.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Graph;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& pool = static_cast<const PoolParams&>(params);
  const PoolGeometry& g = pool.geometry;
  LANTERN_ASSERT((inputs[0].shape == Shape{g.n, g.c, g.ih, g.iw}),
                 "pooling source has the shape it was made for");
  const Shape out{g.n, g.c, g.oh, g.ow};
  if (!pool.keeps_index) return {{out, DType::kF32}};
  return {{out, DType::kF32}, {out, g.kh * g.kw <= 256 ? DType::kU8 : DType::kI32}};
}

double flops(const Graph& /*graph*/, const Op& op) {
  const PoolGeometry& g = op.params_as<PoolParams>().geometry;
  return static_cast<double>(g.n * g.c * g.oh * g.ow) * static_cast<double>(g.kh * g.kw);
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kMaxPoolBackward, op.params, {*dy, op.outputs[1]}, {builder.target(op.inputs[0])});
}

}  // namespace

std::string PoolParams::describe() const {
  const PoolGeometry& g = geometry;
  return fmt::format("size={}x{} stride={}x{} pad={}x{}", g.kh, g.kw, g.sh, g.sw, g.ph, g.pw);
}

const graph::OpDef kMaxPoolForward{
    .name = "max_pool", .infer = infer, .flops = flops, .gradient = gradient};
const graph::OpDef kMaxPoolBackward{.name = "max_pool_backward"};

}  // namespace lantern::ops
