#include <algorithm>

#include "core/error.hpp"
#include "io/onnx_builder.hpp"
#include "ops/activation/activation_op.hpp"
#include "ops/add/add.hpp"
#include "ops/add/weighted_add.hpp"
#include "ops/avg_pool/avg_pool.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/concat/concat.hpp"
#include "ops/conv/conv.hpp"
#include "ops/linear/linear.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/max_pool/max_pool_depth.hpp"
#include "ops/reorg/reorg.hpp"
#include "ops/scale/scale.hpp"
#include "ops/softmax/softmax.hpp"
#include "ops/upsample/upsample.hpp"

// One function an op kind of the forward program.
namespace lantern::io::onnx {

namespace {

using graph::Op;
using graph::TensorId;
using Ints = std::vector<std::int64_t>;

Ints dims_of(const Shape& shape) {
  Ints dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

// Padding behind the map: as much as the last window needs; the same as in front where that gives
// the same windows, which every reader knows best.
std::int64_t end_padding(std::int64_t in, std::int64_t out, std::int64_t window,
                         std::int64_t stride, std::int64_t begin) {
  if ((in + 2 * begin - window) / stride + 1 == out) return begin;
  return std::max<std::int64_t>(0, (out - 1) * stride + window - in - begin);
}

void conv(Builder& b, const Op& op) {
  const auto& params = op.params_as<ops::ConvParams>();
  const ops::ConvGeometry& g = params.geometry;
  const std::int64_t window_h = (g.kh - 1) * g.dh + 1, window_w = (g.kw - 1) * g.dw + 1;
  std::vector<std::string> inputs{
      b.name_of(op.inputs[0]),
      b.parameter_constant(op.inputs[1], {g.oc, g.ic / g.groups, g.kh, g.kw})};
  if (params.has_bias) inputs.push_back(b.parameter_constant(op.inputs[2], {g.oc}));
  std::string y = b.node("Conv", std::move(inputs),
                         {{"kernel_shape", Ints{g.kh, g.kw}},
                          {"strides", Ints{g.sh, g.sw}},
                          {"dilations", Ints{g.dh, g.dw}},
                          {"group", g.groups},
                          {"pads", Ints{g.ph, g.pw, end_padding(g.ih, g.oh, window_h, g.sh, g.ph),
                                        end_padding(g.iw, g.ow, window_w, g.sw, g.pw)}}});
  y = activation_nodes(b, y, params.epilogue.activation, g.oc);
  if (params.epilogue.residual) y = b.add(y, b.name_of(op.inputs.back()));
  b.set_name(op.outputs[0], activation_nodes(b, y, params.epilogue.last, g.oc));
}

void batch_norm(Builder& b, const Op& op) {
  const auto& params = op.params_as<ops::BatchNormParams>();
  const Ints channels{b.shape(op.inputs[1]).elements()};
  std::string y = b.node(
      "BatchNormalization",
      {b.name_of(op.inputs[0]), b.parameter_constant(op.inputs[3], channels),
       b.parameter_constant(op.inputs[4], channels), b.parameter_constant(op.inputs[1], channels),
       b.parameter_constant(op.inputs[2], channels)},
      {{"epsilon", ops::kBatchNormEpsilon}});
  y = activation_nodes(b, y, params.activation, b.shape(op.outputs[0]).c());
  if (params.residual) y = b.add(y, b.name_of(op.inputs[5]));
  b.set_name(op.outputs[0], y);
}

void activation(Builder& b, const Op& op) {
  b.set_name(op.outputs[0], activation_nodes(b, b.name_of(op.inputs[0]),
                                             op.params_as<ops::ActivationParams>().activation,
                                             b.shape(op.outputs[0]).c()));
}

std::vector<std::pair<std::string, AttributeValue>> pool_attributes(const ops::PoolGeometry& g) {
  return {{"kernel_shape", Ints{g.kh, g.kw}},
          {"strides", Ints{g.sh, g.sw}},
          {"pads", Ints{g.ph, g.pw, end_padding(g.ih, g.oh, g.kh, g.sh, g.ph),
                        end_padding(g.iw, g.ow, g.kw, g.sw, g.pw)}}};
}

void max_pool(Builder& b, const Op& op) {
  b.set_name(op.outputs[0], b.node("MaxPool", {b.name_of(op.inputs[0])},
                                   pool_attributes(op.params_as<ops::PoolParams>().geometry)));
}

void local_avg_pool(Builder& b, const Op& op) {
  auto attributes = pool_attributes(op.params_as<ops::LocalAvgPoolParams>().geometry);
  attributes.emplace_back("count_include_pad", 0L);
  b.set_name(op.outputs[0],
             b.node("AveragePool", {b.name_of(op.inputs[0])}, std::move(attributes)));
}

void global_avg_pool(Builder& b, const Op& op) {
  b.set_name(op.outputs[0], b.node("GlobalAveragePool", {b.name_of(op.inputs[0])}));
}

// Channel g of the output is the largest of g, g + OC, g + 2 OC, ...
void depth_pool(Builder& b, const Op& op) {
  const Shape& in = b.shape(op.inputs[0]);
  const std::int64_t channels = op.params_as<ops::DepthPoolParams>().out_channels;
  if (in.c() % channels != 0) {
    b.refuse(op, fmt::format("maxpool_depth over {} channels needs a multiple of out_channels={}",
                             in.c(), channels));
  }
  std::string y = b.name_of(op.inputs[0]);
  for (std::int64_t first = channels; first < in.c(); first += channels) {
    y = b.node("Max", {first == channels ? b.slice(y, 0, channels) : y,
                       b.slice(b.name_of(op.inputs[0]), first, channels)});
  }
  b.set_name(op.outputs[0], y);
}

void upsample(Builder& b, const Op& op) {
  const auto& params = op.params_as<ops::UpsampleParams>();
  const std::string& x = b.name_of(op.inputs[0]);
  const auto side = static_cast<float>(params.stride);
  if (params.reduce) {
    const Ints window{params.stride, params.stride};
    const std::string mean =
        b.node("AveragePool", {x}, {{"kernel_shape", window}, {"strides", window}});
    b.set_name(op.outputs[0], b.scaled(mean, side * side * params.scale));
    return;
  }
  const std::string y = b.node("Resize", {x, "", b.constant({4}, {1, 1, side, side})},
                               {{"mode", std::string("nearest")},
                                {"nearest_mode", std::string("floor")},
                                {"coordinate_transformation_mode", std::string("asymmetric")}});
  b.set_name(op.outputs[0], b.scaled(y, params.scale));
}

void concat(Builder& b, const Op& op) {
  std::vector<std::string> parts;
  for (const ops::ConcatPart& part : op.params_as<ops::ConcatParams>().parts) {
    const auto* slice = std::get_if<ops::ChannelSlice>(&part.source);
    LANTERN_ASSERT(slice != nullptr, "nothing is fused into what is exported");
    const TensorId input = op.inputs[parts.size()];
    const bool whole = slice->first == 0 && slice->count == b.shape(input).c();
    parts.push_back(whole ? b.name_of(input)
                          : b.slice(b.name_of(input), slice->first, slice->count));
  }
  b.set_name(op.outputs[0],
             parts.size() == 1 ? parts[0] : b.node("Concat", std::move(parts), {{"axis", 1L}}));
}

// An input of a sum with the channels of its result: the first ones, or zeros behind.
std::string fitted(Builder& b, const Op& op, TensorId input, const Shape& to) {
  const Shape& from = b.shape(input);
  const std::string& x = b.name_of(input);
  if (from.h() != to.h() || from.w() != to.w()) {
    b.refuse(op, fmt::format("it adds a map of {}x{} to one of {}x{}; ONNX adds equal maps",
                             from.w(), from.h(), to.w(), to.h()));
  }
  if (from.c() > to.c()) return b.slice(x, 0, to.c());
  if (from.c() < to.c()) {
    return b.node("Pad", {x, b.constant({0, 0, 0, 0, 0, to.c() - from.c(), 0, 0})});
  }
  return x;
}

void add(Builder& b, const Op& op) {
  const Shape& to = b.shape(op.outputs[0]);
  std::string sum = b.name_of(op.inputs[0]);
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    sum = b.add(sum, fitted(b, op, op.inputs[i], to));
  }
  b.set_name(op.outputs[0], sum);
}

void weighted_add(Builder& b, const Op& op) {
  const auto& params = op.params_as<ops::WeightedAddParams>();
  const Shape& to = b.shape(op.outputs[0]);
  const auto inputs = op.inputs.size() - 1;
  ops::ref::AddParams shapes{
      .shapes = std::vector<ops::ref::AddShape>(inputs, {to.c(), to.h(), to.w()}),
      .weights = params.per_channel ? ops::ref::AddWeights::kPerChannel
                                    : ops::ref::AddWeights::kPerFeature,
      .normalization = params.normalization};
  const std::span<const float> raw = b.parameter(op.inputs[0]);
  std::vector<std::vector<float>> weights(inputs);  // by input: one, or one a channel
  for (std::int64_t set = 0; set < shapes.sets(); ++set) {
    const std::vector<float> normal = ops::ref::normalized_weights(shapes, raw.data(), set);
    for (std::size_t i = 0; i < inputs; ++i) weights[i].push_back(normal[i]);
  }
  std::string sum;
  for (std::size_t i = 0; i < inputs; ++i) {
    const Ints dims{1, shapes.sets(), 1, 1};
    const std::string part =
        b.mul(fitted(b, op, op.inputs[i + 1], to), b.constant(dims, std::move(weights[i])));
    sum = i == 0 ? part : b.add(sum, part);
  }
  b.set_name(op.outputs[0], sum);
}

void scale(Builder& b, const Op& op) {
  b.set_name(op.outputs[0], b.mul(b.name_of(op.inputs[0]), b.name_of(op.inputs[1])));
}

void reorg(Builder& b, const Op& op) {
  const auto& params = op.params_as<ops::ReorgParams>();
  const Shape& in = b.shape(op.inputs[0]);
  const std::int64_t s = params.stride, n = in.n(), c = in.c(), h = in.h(), w = in.w();
  const std::string& x = b.name_of(op.inputs[0]);
  std::string y;
  switch (params.kind) {
    case ops::ReorgKind::kReorg:  // the input is read as [c / s^2, h * s, w * s]
      y = b.transpose(b.reshape(x, {n, c / (s * s), h, s, w, s}), {0, 3, 5, 1, 2, 4});
      break;
    case ops::ReorgKind::kSpaceToDepth:
      y = b.transpose(b.reshape(x, {n, c, h / s, s, w / s, s}), {0, 3, 5, 1, 2, 4});
      break;
    case ops::ReorgKind::kDepthToSpace:
      y = b.transpose(b.reshape(x, {n, s, s, c / (s * s), h, w}), {0, 3, 4, 1, 5, 2});
      break;
  }
  b.set_name(op.outputs[0], b.reshape(y, dims_of(b.shape(op.outputs[0]))));
}

void linear(Builder& b, const Op& op) {
  const Shape& out = b.shape(op.outputs[0]);
  const std::int64_t outputs = out.c();
  const std::int64_t inputs = b.shape(op.inputs[1]).elements() / outputs;
  std::vector<std::string> operands{b.reshape(b.name_of(op.inputs[0]), {out.n(), inputs}),
                                    b.parameter_constant(op.inputs[1], {outputs, inputs})};
  if (op.inputs.size() > 2) operands.push_back(b.parameter_constant(op.inputs[2], {outputs}));
  const std::string y = b.node("Gemm", std::move(operands), {{"transB", 1L}});
  b.set_name(op.outputs[0], b.reshape(y, dims_of(out)));
}

void softmax(Builder& b, const Op& op) {
  const auto& params = op.params_as<ops::SoftmaxParams>();
  const Shape& shape = b.shape(op.inputs[0]);
  if (params.tree) b.refuse(op, "the groups of a tree= have no form here");
  std::string x = b.scaled(b.name_of(op.inputs[0]), 1 / params.temperature);
  if (params.spatial) {
    b.set_name(op.outputs[0], b.node("Softmax", {x}, {{"axis", 1L}}));
    return;
  }
  const std::int64_t rows = shape.n() * params.groups;
  x = b.node("Softmax", {b.reshape(x, {rows, shape.elements() / rows})}, {{"axis", 1L}});
  b.set_name(op.outputs[0], b.reshape(x, dims_of(shape)));
}

struct Form {
  const graph::OpDef* def;
  void (*write)(Builder&, const Op&);
};
constexpr Form kForms[] = {
    {&ops::kConvForward, conv},
    {&ops::kBatchNormApply, batch_norm},
    {&ops::kActivationForward, activation},
    {&ops::kMaxPoolForward, max_pool},
    {&ops::kDepthPoolForward, depth_pool},
    {&ops::kLocalAvgPoolForward, local_avg_pool},
    {&ops::kGlobalAvgPoolForward, global_avg_pool},
    {&ops::kUpsampleForward, upsample},
    {&ops::kConcatForward, concat},
    {&ops::kAddForward, add},
    {&ops::kWeightedAddForward, weighted_add},
    {&ops::kScaleForward, scale},
    {&ops::kReorgForward, reorg},
    {&ops::kLinearForward, linear},
    {&ops::kSoftmaxForward, softmax},
};

}  // namespace

void op_nodes(Builder& builder, const Op& op) {
  builder.set_layer(op.layer);
  for (const Form& form : kForms) {
    if (form.def == op.def) return form.write(builder, op);
  }
  builder.refuse(op, fmt::format("'{}' has no form in opset {}", op.def->name, kOpset));
}

}  // namespace lantern::io::onnx
