#include "ops/conv/conv.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/concat/concat.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Graph;
using graph::Op;
using graph::OpParams;
using graph::Role;
using graph::Tensor;
using graph::TensorId;
using graph::TensorType;

namespace {

std::string describe_geometry(const ConvGeometry& g) {
  return fmt::format("size={}x{} stride={}x{} pad={}x{} dilation={}x{} groups={}", g.kh, g.kw, g.sh,
                     g.sw, g.ph, g.pw, g.dh, g.dw, g.groups);
}

std::string describe_slice(std::int64_t first) {
  return first > 0 ? fmt::format(" from={}", first) : "";
}

std::vector<TensorType> infer_forward(const OpParams& params, std::span<const TensorType> inputs) {
  const ConvGeometry& g = static_cast<const ConvParams&>(params).geometry;
  Shape source = inputs[0].shape;
  const std::int64_t first = static_cast<const ConvParams&>(params).source_first;
  LANTERN_ASSERT(first + g.ic <= source.c(), "a slice lies inside its source");
  LANTERN_ASSERT(
      source.c() == g.ic || (first % kSliceAlignment == 0 && g.ic % kSliceAlignment == 0),
      "a slice begins and ends with a channel block");
  source.set(1, g.ic);
  LANTERN_ASSERT((source == Shape{g.n, g.ic, g.ih, g.iw}),
                 "convolution source has the shape it was made for");
  LANTERN_ASSERT(inputs[1].shape.elements() == g.weights_count(),
                 "convolution weights have the right count");
  return {{Shape{g.n, g.oc, g.oh, g.ow}, DType::kF32}};
}

double flops_forward(const Graph& /*graph*/, const Op& op) {
  return op.params_as<ConvParams>().geometry.flops();
}
double flops_backward(const Graph& /*graph*/, const Op& op) {
  return op.params_as<ConvGradientParams>().geometry.flops();
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> diff_dst = builder.gradient(op.outputs[0]);
  if (!diff_dst) return;
  const auto& forward = op.params_as<ConvParams>();
  LANTERN_ASSERT(forward.epilogue.is_empty(), "convolutions that are trained do nothing else");
  const TensorId weights = op.inputs[1];
  auto params =
      std::make_shared<const ConvGradientParams>(forward.geometry, weights, forward.source_first);
  if (forward.has_bias && builder.wants(op.inputs[2])) {
    builder.emit(kBiasGradient, std::make_shared<const OpParams>(), {*diff_dst},
                 {builder.target(op.inputs[2])});
  }
  if (builder.wants(weights)) {
    builder.emit(kConvBackwardWeights, params, {op.inputs[0], *diff_dst},
                 {builder.target(weights)});
  }
  if (!builder.wants(op.inputs[0])) return;
  const Tensor source = builder.graph().tensor(op.inputs[0]);
  const ConvGeometry& g = forward.geometry;
  if (source.type.shape.c() == g.ic) {
    builder.emit(kConvBackwardData, params, {*diff_dst, weights}, {builder.target(op.inputs[0])});
    return;
  }
  const TensorId slice = builder.temporary(
      "d_" + source.name + ".slice", {Shape{g.n, g.ic, g.ih, g.iw}, DType::kF32}, Role::kGradient);
  builder.emit(kConvBackwardData, params, {*diff_dst, weights}, {{slice}});
  builder.emit(kConcatBackward,
               std::make_shared<const ConcatGradientParams>(
                   ChannelSlice{.first = forward.source_first, .count = g.ic}, 0),
               {slice}, {builder.target(op.inputs[0])});
}

}  // namespace

std::string ConvParams::describe() const {
  return describe_geometry(geometry) + (has_bias ? " bias" : "") + describe_slice(source_first) +
         epilogue.describe() + (may_round ? " may_round" : "");
}
std::string ConvGradientParams::describe() const {
  return describe_geometry(geometry) + describe_slice(source_first);
}

std::int64_t image_group(const ConvGeometry& g) {
  constexpr std::int64_t kLargeMap = 676;  // 26 x 26
  constexpr double kLargeWork = 50e6;      // FLOP of one image's forward
  const double work = g.flops() / static_cast<double>(g.n);
  return g.oh * g.ow >= kLargeMap && work >= kLargeWork ? 1 : 4;
}

const graph::OpDef kConvForward{
    .name = "conv_forward", .infer = infer_forward, .flops = flops_forward, .gradient = gradient};
const graph::OpDef kConvBackwardData{.name = "conv_backward_data", .flops = flops_backward};
const graph::OpDef kConvBackwardWeights{.name = "conv_backward_weights", .flops = flops_backward};
const graph::OpDef kBiasGradient{.name = "bias_gradient"};

}  // namespace lantern::ops
