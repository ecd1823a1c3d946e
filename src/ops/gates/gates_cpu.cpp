#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "ops/blocks.hpp"
#include "ops/gates/gates.hpp"
#include "ops/parallel.hpp"
#include "ops/scale/scale.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer_same(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  for (const TensorType& input : inputs)
    LANTERN_ASSERT(input.shape == inputs[0].shape, "operands of a pointwise op have equal shapes");
  return {inputs[0]};
}

void gradient_blend(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  const TensorId gate = op.inputs[0];
  const TensorId a = op.inputs[1];
  const TensorId b = op.inputs[2];
  if (builder.wants(gate))
    builder.emit(kBlendBackwardGate, op.params, {*dy, a, b}, {builder.target(gate)});
  if (builder.wants(a)) {
    builder.emit(kScaleBackwardSource, std::make_shared<const ScaleParams>(ScaleKind::kElement),
                 {*dy, gate}, {builder.target(a)});
  }
  if (builder.wants(b))
    builder.emit(kBlendBackwardOther, op.params, {*dy, gate}, {builder.target(b)});
}

void gradient_clamp(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kClampBackward, op.params, {*dy, op.inputs[0]}, {builder.target(op.inputs[0])});
}

void gradient_factor(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kGradientFactorBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

// A kernel that is the same function of every element of up to three inputs. `value(o, i)` gets
// the inputs as floats; zero inputs give zero, so channel padding stays zero.
template <typename Value>
KernelChoice pointwise(const Op& op, const SelectContext& context, bool in_place, Value value) {
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const std::size_t inputs = op.inputs.size();
  KernelChoice choice{.name = "cpu",
                      .inputs = std::vector<Layout>(inputs, layout),
                      .outputs = {layout},
                      .images = e.n};
  if (in_place && !accumulate) choice.may_alias.push_back({0, 0});
  choice.kernel =
      make_kernel([=, threads = context.threads](std::span<void* const> o, const RunContext& run) {
        std::array<const float*, 3> in{};
        for (std::size_t k = 0; k < inputs; ++k) in[k] = static_cast<const float*>(o[k]);
        auto* out = static_cast<float*>(o[inputs]);
        parallel_ranges(e.with_images(run.images).elements(), threads,
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t i = begin; i < end; ++i) {
                            const float v = value(in, i);
                            out[i] = accumulate ? out[i] + v : v;
                          }
                        });
      });
  return choice;
}

}  // namespace

std::string FactorParams::describe() const { return fmt::format("value={:g}", value); }

const graph::OpDef kBlendForward{.name = "blend", .infer = infer_same, .gradient = gradient_blend};
const graph::OpDef kBlendBackwardGate{.name = "blend_backward_gate"};
const graph::OpDef kBlendBackwardOther{.name = "blend_backward_other"};
const graph::OpDef kClampForward{.name = "clamp", .infer = infer_same, .gradient = gradient_clamp};
const graph::OpDef kClampBackward{.name = "clamp_backward"};
const graph::OpDef kGradientFactor{
    .name = "gradient_factor", .infer = infer_same, .gradient = gradient_factor};
const graph::OpDef kGradientFactorBackward{.name = "gradient_factor_backward"};

KernelChoice choose_blend_forward(const Op& op, const SelectContext& context) {
  // One product and one sum: however the compiler joins them, every element is joined alike.
  return pointwise(op, context, true, [](const auto& in, std::int64_t i) {
    return in[2][i] + in[0][i] * (in[1][i] - in[2][i]);
  });
}

KernelChoice choose_blend_backward_gate(const Op& op, const SelectContext& context) {
  return pointwise(op, context, true,
                   [](const auto& in, std::int64_t i) { return in[0][i] * (in[1][i] - in[2][i]); });
}

KernelChoice choose_blend_backward_other(const Op& op, const SelectContext& context) {
  return pointwise(op, context, true,
                   [](const auto& in, std::int64_t i) { return in[0][i] * (1.0F - in[1][i]); });
}

KernelChoice choose_clamp_forward(const Op& op, const SelectContext& context) {
  const float limit = op.params_as<FactorParams>().value;
  // Not in place: backward asks which values were outside.
  return pointwise(op, context, false, [limit](const auto& in, std::int64_t i) {
    return std::clamp(in[0][i], -limit, limit);
  });
}

KernelChoice choose_clamp_backward(const Op& op, const SelectContext& context) {
  const float limit = op.params_as<FactorParams>().value;
  return pointwise(op, context, true, [limit](const auto& in, std::int64_t i) {
    return in[1][i] >= -limit && in[1][i] <= limit ? in[0][i] : 0.0F;
  });
}

KernelChoice choose_gradient_factor(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .may_alias = {{0, 0}},
          .images = e.n,
          .kernel = make_kernel([e](std::span<void* const> o, const RunContext& run) {
            if (o[0] == o[1]) return;
            const auto count = static_cast<std::size_t>(e.with_images(run.images).elements());
            std::memcpy(o[1], o[0], count * sizeof(float));
          })};
}

KernelChoice choose_gradient_factor_backward(const Op& op, const SelectContext& context) {
  const float factor = op.params_as<FactorParams>().value;
  return pointwise(op, context, true,
                   [factor](const auto& in, std::int64_t i) { return in[0][i] * factor; });
}

}  // namespace lantern::ops
