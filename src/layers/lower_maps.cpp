#include "layers/layer_def.hpp"
#include "layers/lower_context.hpp"
#include "ops/add/add.hpp"
#include "ops/add/weighted_add.hpp"
#include "ops/blur/blur.hpp"
#include "ops/concat/concat.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/max_pool/max_pool_depth.hpp"
#include "ops/upsample/upsample.hpp"
#include "ops/zero_nonmax/zero_nonmax.hpp"

namespace lantern::layers {

using graph::TensorId;

TensorId lower_blur(LowerContext& context, const Layer& layer, TensorId x, int antialiasing,
                    int stride_x, int stride_y) {
  const Shape& map = context.shape(x);
  const ops::BlurGeometry g{
      .kind = antialiasing == 2 ? ops::BlurKind::kBox : ops::BlurKind::kBinomial,
      .n = map.n(),
      .c = map.c(),
      .ih = map.h(),
      .iw = map.w(),
      .sh = stride_y,
      .sw = stride_x};
  return context.add(ops::kBlurForward, std::make_shared<const ops::BlurParams>(g), {x}, layer,
                     "blur")[0];
}

void lower_maxpool(LowerContext& context, const Layer& layer, const MaxpoolSpec& spec) {
  if (context.has_output(layer.index)) return;  // folded into the batch norm before it
  if (spec.maxpool_depth != 0) {
    context.set_output(layer.index, context.add(ops::kDepthPoolForward,
                                                std::make_shared<const ops::DepthPoolParams>(
                                                    spec.out_channels, context.training()),
                                                {context.previous(layer)}, layer, "pool")[0]);
    return;
  }
  const bool blurs = spec.antialiasing != 0;  // then the blur has the stride
  const Dims plain = pooled(layer.in, spec.size, spec.padding, blurs ? 1 : spec.stride_x,
                            blurs ? 1 : spec.stride_y);
  const std::int64_t offset = spec.padding / 2;
  const ops::PoolGeometry g{.n = context.images(),
                            .c = layer.in.c,
                            .ih = layer.in.h,
                            .iw = layer.in.w,
                            .oh = plain.h,
                            .ow = plain.w,
                            .kh = spec.size,
                            .kw = spec.size,
                            .sh = blurs ? 1 : spec.stride_y,
                            .sw = blurs ? 1 : spec.stride_x,
                            .ph = offset,
                            .pw = offset};
  const auto outputs = context.add(ops::kMaxPoolForward,
                                   std::make_shared<const ops::PoolParams>(g, context.training()),
                                   {context.previous(layer)}, layer, "pool");
  TensorId y = outputs[0];
  if (spec.maxpool_zero_nonmax != 0) {
    std::vector<TensorId> inputs{y, context.previous(layer)};
    if (context.training()) inputs.push_back(outputs[1]);
    y = context.add(ops::kZeroNonmax,
                    std::make_shared<const ops::ZeroNonmaxParams>(g.ph * g.kw + g.pw), inputs,
                    layer, "nonmax")[0];
  }
  if (blurs) y = lower_blur(context, layer, y, spec.antialiasing, spec.stride_x, spec.stride_y);
  context.set_output(layer.index, y);
}

void lower_upsample(LowerContext& context, const Layer& layer, const UpsampleSpec& spec) {
  const bool reduce = spec.stride < 0;
  const ops::UpsampleParams params(std::abs(spec.stride), reduce, spec.scale);
  const TensorId source = context.previous(layer);
  if (context.joining_route(layer) != nullptr) {
    context.defer(layer.index, {{params, layer.out.c}, {source}});
    return;
  }
  context.set_output(layer.index, context.add(ops::kUpsampleForward,
                                              std::make_shared<const ops::UpsampleParams>(params),
                                              {source}, layer, "up")[0]);
}

void lower_route(LowerContext& context, const Layer& layer, const RouteSpec& spec) {
  std::vector<TensorId> inputs;
  std::vector<ops::ConcatPart> parts;
  for (const int source : layer.sources) {
    if (const DeferredPart* made = context.deferred(source)) {
      parts.push_back(made->part);
      inputs.insert(inputs.end(), made->inputs.begin(), made->inputs.end());
      continue;
    }
    inputs.push_back(context.output_of(source));
    const std::int64_t channels = context.shape(inputs.back()).c() / spec.groups;
    parts.emplace_back(ops::ChannelSlice{.first = channels * spec.group_id, .count = channels});
  }
  if (inputs.size() == 1 && spec.groups == 1) {  // another name for the same map
    context.set_output(layer.index, inputs[0]);
    return;
  }
  if (context.is_read_in_place(layer)) {
    context.defer(layer.index, {parts[0], inputs});
    return;
  }
  context.set_output(layer.index, context.add(ops::kConcatForward,
                                              std::make_shared<const ops::ConcatParams>(parts),
                                              inputs, layer, "route")[0]);
}

void lower_shortcut(LowerContext& context, const Layer& layer, const ShortcutSpec& spec) {
  if (context.has_output(layer.index)) return;  // folded into the batch norm before it
  std::vector<TensorId> inputs{context.previous(layer)};
  for (const int source : layer.sources) inputs.push_back(context.output_of(source));
  if (spec.weights_type != WeightsType::kNone) {
    const bool per_channel = spec.weights_type == WeightsType::kPerChannel;
    const auto normalization = spec.weights_normalization == WeightsNormalization::kRelu
                                   ? ops::AddNormalization::kRelu
                                   : ops::AddNormalization::kSoftmax;
    const std::int64_t sets = per_channel ? layer.in.c : 1;
    inputs.insert(inputs.begin(),
                  context.parameter(layer, "weights",
                                    Shape{static_cast<std::int64_t>(inputs.size()) * sets}));
    const TensorId sum =
        context.add(ops::kWeightedAddForward,
                    std::make_shared<const ops::WeightedAddParams>(normalization, per_channel),
                    inputs, layer, "sum")[0];
    context.set_output(layer.index, context.activate(sum, spec.activation, layer));
    return;
  }
  const TensorId sum = context.add(ops::kAddForward, std::make_shared<const graph::OpParams>(),
                                   inputs, layer, "sum")[0];
  context.set_output(layer.index, context.activate(sum, spec.activation, layer));
}

void lower_activation(LowerContext& context, const Layer& layer, const ActivationSpec& spec) {
  context.set_output(layer.index,
                     context.activate(context.previous(layer), spec.activation, layer));
}

void lower_batchnorm(LowerContext& context, const Layer& layer, const BatchnormSpec& /*spec*/) {
  const Shape channels{layer.in.c};
  context.parameter(layer, "biases", channels);  // the order of the weights file
  context.parameter(layer, "scales", channels);
  context.set_output(
      layer.index,
      context.batch_norm(context.previous(layer), ops::Activation::kLinear, std::nullopt, layer));
}

}  // namespace lantern::layers
