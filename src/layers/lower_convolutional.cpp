#include <algorithm>

#include "layers/lower_context.hpp"
#include "ops/conv/conv.hpp"
#include "ops/coord_conv/coord_conv.hpp"
#include "ops/excitation/excitation.hpp"
#include "ops/tied_filters/tied_filters.hpp"

namespace lantern::layers {

using graph::TensorId;

ops::ref::FilterTie filter_tie(const ConvolutionalSpec& spec) {
  return spec.sway != 0           ? ops::FilterTie::kSway
         : spec.rotate != 0       ? ops::FilterTie::kRotate
         : spec.stretch != 0      ? ops::FilterTie::kStretch
         : spec.stretch_sway != 0 ? ops::FilterTie::kStretchSway
                                  : ops::FilterTie::kNone;
}

namespace {

void check_supported(const LowerContext& context, const Layer& layer,
                     const ConvolutionalSpec& spec) {
  if (spec.xnor != 0 || spec.binary != 0) {
    refuse(layer,
           "binary and xnor convolutions are not supported: they need bit kernels that nothing "
           "else uses");
  }
  if (!context.training()) return;
  const ops::FilterTie tie = filter_tie(spec);
  const std::int64_t parts = ops::ref::tie_parts(tie);
  if (spec.share_index &&
      (tie != ops::FilterTie::kNone || spec.grad_centr != 0 || spec.reverse != 0)) {
    refuse(
        layer,
        "sway, rotate, stretch, stretch_sway, grad_centr and reverse belong to the update of the "
        "weights: write them in layer {}, whose weights share_index takes",
        context.owner(layer).index);
  }
  if (spec.filters % parts != 0) {
    refuse(layer, "ties {} parts of the filters to each other; filters={} is not a multiple of {}",
           parts, spec.filters, parts);
  }
  if (spec.reverse != 0 && context.network().net.adam != 0) {
    refuse(layer, "reverse works on the step of SGD, but [net] has adam=1; remove one of the keys");
  }
}

bool excites(const LowerContext& context, const ConvolutionalSpec& spec) {
  return context.training() && spec.assisted_excitation != 0;
}

// Whether more than an activation follows the normalisation, so that nothing folds into it.
bool has_more_behind(const LowerContext& context, const ConvolutionalSpec& spec) {
  return excites(context, spec) || spec.antialiasing != 0 || spec.coordconv != 0;
}

TensorId excited(LowerContext& context, const Layer& layer, const ConvolutionalSpec& spec,
                 TensorId y) {
  const bool has_boxes = std::ranges::any_of(context.network().layers, [](const Layer& other) {
    return detection_keys(other).has_value();
  });
  if (!has_boxes) {
    refuse(layer,
           "assisted_excitation raises what true boxes cover, but the network has no detection "
           "head; remove the key");
  }
  auto params = std::make_shared<ops::ExcitationParams>();
  params->until = spec.assisted_excitation;
  params->max_truths = truth_rows(context.network());
  const TensorId truth = context.truth(layer, std::int64_t{params->max_truths} * 6);
  return context.add(ops::kExcitation, std::move(params), {y, truth}, layer, "excited")[0];
}

// What follows the activation, in Darknet's order.
TensorId finish(LowerContext& context, const Layer& layer, const ConvolutionalSpec& spec,
                TensorId y) {
  if (excites(context, spec)) y = excited(context, layer, spec, y);
  if (spec.antialiasing != 0)
    y = lower_blur(context, layer, y, spec.antialiasing, spec.stride_x, spec.stride_y);
  if (spec.coordconv != 0) {
    y = context.add(ops::kCoordConvForward, std::make_shared<const graph::OpParams>(), {y}, layer,
                    "coordinates")[0];
  }
  return y;
}

// The shortcut behind this convolution, when its sum can be folded into the batch norm's pass.
const Layer* foldable_shortcut(const LowerContext& context, const Layer& layer,
                               const ConvolutionalSpec& spec) {
  const Layer* next = context.plain_shortcut_behind(layer);
  if (next == nullptr || spec.batch_normalize == 0 || ops::mixes_channels(spec.activation) ||
      layer.common.onlyforward != 0 || next->common.onlyforward != 0)
    return nullptr;
  return std::get<ShortcutSpec>(next->spec).activation == ops::Activation::kLinear ? next : nullptr;
}

// The 2x2 pool of stride 2 behind this convolution, when it can be folded into the batch norm's
// pass.
const Layer* foldable_pool(const LowerContext& context, const Layer& layer,
                           const ConvolutionalSpec& spec) {
  const auto next = static_cast<std::size_t>(layer.index) + 1;
  const std::vector<Layer>& layers = context.network().layers;
  if (!context.options().fuse_layers || spec.batch_normalize == 0 || next >= layers.size())
    return nullptr;
  if (ops::mixes_channels(spec.activation) || !context.only_next_reads(layer.index)) return nullptr;
  const auto* pool = std::get_if<MaxpoolSpec>(&layers[next].spec);
  if (pool == nullptr || pool->maxpool_depth != 0 || pool->antialiasing != 0 ||
      pool->maxpool_zero_nonmax != 0) {
    return nullptr;
  }
  if (layer.common.onlyforward != 0 || layers[next].common.onlyforward != 0) return nullptr;
  const bool halves =
      pool->size == 2 && pool->stride_x == 2 && pool->stride_y == 2 && pool->padding / 2 == 0;
  return halves && layers[next].out.w * 2 == layer.out.w && layers[next].out.h * 2 == layer.out.h
             ? &layers[next]
             : nullptr;
}

}  // namespace

void lower_convolutional(LowerContext& context, const Layer& layer, const ConvolutionalSpec& spec) {
  check_supported(context, layer, spec);
  const std::int64_t padding = std::int64_t{spec.padding} * spec.dilation;
  const bool blurs = spec.antialiasing != 0;  // then the blur has the stride
  const ops::ConvGeometry g{
      .n = context.images(),
      .ic = layer.in.c,
      .ih = layer.in.h,
      .iw = layer.in.w,
      .oc = layer.out.c,
      .oh = blurs ? layer.in.h + 2 * spec.padding - spec.size + 1 : layer.out.h,
      .ow = blurs ? layer.in.w + 2 * spec.padding - spec.size + 1 : layer.out.w,
      .groups = spec.groups,
      .kh = spec.size,
      .kw = spec.size,
      .sh = blurs ? 1 : spec.stride_y,
      .sw = blurs ? 1 : spec.stride_x,
      .ph = padding,
      .pw = padding,
      .dh = spec.dilation,
      .dw = spec.dilation};
  if (context.options().fold) {
    FinishConvolution behind;
    if (has_more_behind(context, spec))
      behind = [&](TensorId y) { return finish(context, layer, spec, y); };
    lower_folded(context, layer, spec, g, behind);
    return;
  }
  const bool normalized = spec.batch_normalize != 0;
  const TensorId biases = context.parameter(layer, "biases", Shape{g.oc});
  if (normalized) {  // the order of the weights file
    context.parameter(layer, "scales", Shape{g.oc});
    context.state(layer, "rolling_mean", Shape{g.oc});
    context.state(layer, "rolling_variance", Shape{g.oc});
  }
  const TensorId weights =
      context.parameter(layer, "weights", Shape{g.oc, g.ic / g.groups, g.kh, g.kw});
  const ChannelSource source = context.channel_source(layer);
  std::vector<TensorId> inputs{source.tensor, weights};
  if (!normalized) inputs.push_back(biases);
  const TensorId x = context.add(
      ops::kConvForward, std::make_shared<const ops::ConvParams>(g, !normalized, source.first),
      inputs, layer, "conv")[0];
  if (!normalized) {
    context.set_output(layer.index,
                       finish(context, layer, spec, context.activate(x, spec.activation, layer)));
    return;
  }
  // With a single mini-batch an iteration there is nothing to merge: it is ordinary batch
  // normalisation.
  const bool across_mini_batches =
      spec.batch_normalize == 2 && context.network().net.subdivisions > 1;
  if (has_more_behind(context, spec)) {
    const TensorId y =
        context.batch_norm(x, spec.activation, std::nullopt, layer, across_mini_batches);
    context.set_output(layer.index, finish(context, layer, spec, y));
    return;
  }
  if (const Layer* pool = foldable_pool(context, layer, spec)) {
    context.set_output(pool->index,
                       context.batch_norm_pool(x, spec.activation, layer, across_mini_batches));
    return;
  }
  if (context.joining_route(layer) != nullptr && !ops::mixes_channels(spec.activation)) {
    context.defer(layer.index,
                  context.batch_norm_part(x, spec.activation, layer, across_mini_batches));
    return;
  }
  const Layer* shortcut = foldable_shortcut(context, layer, spec);
  std::optional<TensorId> residual;
  if (shortcut != nullptr) residual = context.output_of(shortcut->sources[0]);
  const TensorId y = context.batch_norm(x, spec.activation, residual, layer, across_mini_batches);
  context.set_output(layer.index, y);
  if (shortcut != nullptr) context.set_output(shortcut->index, y);
}

}  // namespace lantern::layers
