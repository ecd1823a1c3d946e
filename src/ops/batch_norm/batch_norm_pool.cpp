#include "ops/batch_norm/batch_norm_pool.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/batch_norm/batch_norm_gradient.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const Shape& x = inputs[0].shape;
  LANTERN_ASSERT(x.h() % 2 == 0 && x.w() % 2 == 0, "a fused pool has whole windows");
  const Shape pooled{x.n(), x.c(), x.h() / 2, x.w() / 2};
  if (!static_cast<const BatchNormPoolParams&>(params).keeps_index) return {{pooled, DType::kF32}};
  return {{pooled, DType::kF32}, {pooled, DType::kU8}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> d_pooled = builder.gradient(op.outputs[0]);
  if (!d_pooled) return;
  emit_batch_norm_gradient(
      builder, {.inputs = op.inputs, .params = op.params, .incoming = {*d_pooled, op.outputs[1]}},
      kBatchNormPoolBackwardReduce, kBatchNormPoolBackwardApply);
}

}  // namespace

std::string BatchNormPoolParams::describe() const {
  return fmt::format("activation={} pool=2x2{}", to_string(activation), fixed ? " fixed" : "");
}

const graph::OpDef kBatchNormPool{.name = "batch_norm_pool", .infer = infer, .gradient = gradient};
const graph::OpDef kBatchNormPoolBackwardReduce{.name = "batch_norm_pool_backward_reduce"};
const graph::OpDef kBatchNormPoolBackwardApply{.name = "batch_norm_pool_backward_apply"};

}  // namespace lantern::ops
