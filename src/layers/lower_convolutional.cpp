#include "layers/lower_context.hpp"
#include "ops/conv/conv.hpp"

namespace lantern::layers {

using graph::TensorId;

namespace {

void check_supported(const LowerContext& context, const Layer& layer,
                     const ConvolutionalSpec& spec) {
  if (spec.share_index) refuse(layer, "share_index is not supported by this version");
  if (spec.antialiasing != 0) refuse(layer, "antialiasing is not supported by this version");
  if (spec.xnor != 0 || spec.binary != 0) {
    refuse(layer,
           "binary and xnor convolutions are not supported: they need bit kernels that nothing "
           "else uses");
  }
  if (!context.training()) return;
  if (spec.assisted_excitation != 0)
    refuse(layer, "assisted_excitation is not supported by this version");
  if (spec.sway != 0 || spec.rotate != 0 || spec.stretch != 0 || spec.stretch_sway != 0) {
    refuse(layer, "sway, rotate, stretch and stretch_sway are not supported by this version");
  }
  if (spec.grad_centr != 0) refuse(layer, "grad_centr is not supported by this version");
  if (spec.reverse != 0) refuse(layer, "reverse is not supported by this version");
  if (spec.coordconv != 0)
    refuse(layer, "coordconv is not supported: the reference's kernel never worked");
}

// The shortcut behind this convolution, when its sum can be folded into the batch norm's pass.
const Layer* foldable_shortcut(const LowerContext& context, const Layer& layer,
                               const ConvolutionalSpec& spec) {
  const auto next = static_cast<std::size_t>(layer.index) + 1;
  const std::vector<Layer>& layers = context.network().layers;
  if (!context.options().fuse_layers || spec.batch_normalize == 0 || next >= layers.size())
    return nullptr;
  if (ops::mixes_channels(spec.activation) || !context.only_next_reads(layer.index)) return nullptr;
  const auto* shortcut = std::get_if<ShortcutSpec>(&layers[next].spec);
  if (shortcut == nullptr || shortcut->from.size() != 1 ||
      shortcut->weights_type != WeightsType::kNone)
    return nullptr;
  if (shortcut->activation != ops::Activation::kLinear) return nullptr;
  if (layer.common.onlyforward != 0 || layers[next].common.onlyforward != 0) return nullptr;
  const Layer& source = layers[static_cast<std::size_t>(layers[next].sources[0])];
  return source.index != layer.index && source.out == layer.out ? &layers[next] : nullptr;
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
  const ops::ConvGeometry g{.n = context.images(),
                            .ic = layer.in.c,
                            .ih = layer.in.h,
                            .iw = layer.in.w,
                            .oc = layer.out.c,
                            .oh = layer.out.h,
                            .ow = layer.out.w,
                            .groups = spec.groups,
                            .kh = spec.size,
                            .kw = spec.size,
                            .sh = spec.stride_y,
                            .sw = spec.stride_x,
                            .ph = padding,
                            .pw = padding,
                            .dh = spec.dilation,
                            .dw = spec.dilation};
  if (context.options().fold) {
    lower_folded(context, layer, spec, g, {});
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
  const DeferredPart* slice = context.deferred(layer.index - 1);
  std::vector<TensorId> inputs{slice ? slice->inputs[0] : context.previous(layer), weights};
  if (!normalized) inputs.push_back(biases);
  const std::int64_t first = slice ? std::get<ops::ChannelSlice>(slice->part.source).first : 0;
  const TensorId x =
      context.add(ops::kConvForward, std::make_shared<const ops::ConvParams>(g, !normalized, first),
                  inputs, layer, "conv")[0];
  if (!normalized) {
    context.set_output(layer.index, context.activate(x, spec.activation, layer));
    return;
  }
  // With a single mini-batch an iteration there is nothing to merge: it is ordinary batch
  // normalisation.
  const bool across_mini_batches =
      spec.batch_normalize == 2 && context.network().net.subdivisions > 1;
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
