#include "ops/batch_norm/batch_norm.hpp"

#include <fmt/format.h>

#include "ops/batch_norm/batch_norm_gradient.hpp"
#include "ops/elementwise/elementwise.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Graph;
using graph::Op;
using graph::OpParams;
using graph::Role;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer_statistics(const OpParams& /*params*/,
                                         std::span<const TensorType> inputs) {
  const Shape channels{inputs[0].shape.c()};
  return {{channels, DType::kF32}, {channels, DType::kF32}};
}

std::vector<TensorType> infer_apply(const OpParams& /*params*/,
                                    std::span<const TensorType> inputs) {
  return {{inputs[0].shape, DType::kF32}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  const auto& params = op.params_as<BatchNormParams>();
  if (params.residual && builder.wants(op.inputs[5])) {
    // The sum's gradient is the residual's as well: share the buffer, or copy where it has one
    // already.
    const TensorId residual = op.inputs[5];
    if (!builder.gradient(residual) && !builder.is_borrowed(op.outputs[0])) {
      builder.share_gradient(residual, op.outputs[0], kCopy);
    } else {
      builder.emit(kCopy, std::make_shared<const OpParams>(), {*dy}, {builder.target(residual)});
    }
  }
  emit_batch_norm_gradient(builder, {.inputs = op.inputs, .params = op.params, .incoming = {*dy}},
                           kBatchNormBackwardReduce, kBatchNormBackwardApply);
}

}  // namespace

void emit_batch_norm_gradient(GradientBuilder& builder, const BatchNormGradient& of,
                              const graph::OpDef& reduce, const graph::OpDef& apply) {
  const TensorId x = of.inputs[0];
  const TensorId gamma = of.inputs[3];
  const TensorId beta = of.inputs[4];
  if (!builder.wants(gamma) && !builder.wants(beta) && !builder.wants(x)) return;
  const std::string name = builder.graph().tensor(x).name;
  const TensorType channels{Shape{builder.graph().type(x).shape.c()}, DType::kF32};
  const TensorId sum_dz = builder.temporary(name + ".sum_dz", channels, Role::kStatistic);
  const TensorId sum_dz_xhat = builder.temporary(name + ".sum_dz_xhat", channels, Role::kStatistic);
  std::vector<TensorId> inputs = of.incoming;
  inputs.insert(inputs.end(), {x, of.inputs[1], of.inputs[2], gamma, beta});
  builder.emit(reduce, of.params, inputs, {{sum_dz}, {sum_dz_xhat}});
  if (builder.wants(gamma)) {
    builder.emit(kAddParameterGradient, std::make_shared<const OpParams>(), {sum_dz_xhat},
                 {builder.target(gamma)});
  }
  if (builder.wants(beta)) {
    builder.emit(kAddParameterGradient, std::make_shared<const OpParams>(), {sum_dz},
                 {builder.target(beta)});
  }
  if (!builder.wants(x)) return;
  inputs.insert(inputs.end(), {sum_dz, sum_dz_xhat});
  builder.emit(apply, of.params, inputs, {builder.target(x)});
}

std::string BatchNormParams::describe() const {
  return fmt::format("activation={}{}{}{}", to_string(activation), residual ? " residual" : "",
                     fixed ? " fixed" : "",
                     gradient_first > 0 ? fmt::format(" from={}", gradient_first) : "");
}

const graph::OpDef kBatchNormStatistics{.name = "batch_norm_statistics", .infer = infer_statistics};
const graph::OpDef kBatchNormApply{
    .name = "batch_norm_apply", .infer = infer_apply, .gradient = gradient};
const graph::OpDef kBatchNormBackwardReduce{.name = "batch_norm_backward_reduce"};
const graph::OpDef kBatchNormBackwardApply{.name = "batch_norm_backward_apply"};
const graph::OpDef kBatchNormRolling{.name = "batch_norm_rolling"};

}  // namespace lantern::ops
