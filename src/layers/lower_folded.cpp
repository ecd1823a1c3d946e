#include "layers/lower_context.hpp"
#include "ops/conv/conv.hpp"

// Convolutions of a network that only infers: the batch norm is part of the weights, what follows
// it part of the convolution.
namespace lantern::layers {

using graph::TensorId;

namespace {

// The shortcut behind this convolution, when the convolution can add it on the way.
const Layer* added_on_the_way(const LowerContext& context, const Layer& layer) {
  const Layer* next = context.plain_shortcut_behind(layer);
  if (next == nullptr || ops::mixes_channels(std::get<ShortcutSpec>(next->spec).activation))
    return nullptr;
  return next;
}

}  // namespace

void lower_folded(LowerContext& context, const Layer& layer, const ConvolutionalSpec& spec,
                  const ops::ConvGeometry& g, const FinishConvolution& finish) {
  const TensorId biases = context.parameter(layer, "biases", Shape{g.oc});
  const TensorId weights =
      context.parameter(layer, "weights", Shape{g.oc, g.ic / g.groups, g.kh, g.kw});
  if (spec.batch_normalize != 0) context.mark_folded(layer);
  const ChannelSource source = context.channel_source(layer);
  std::vector<TensorId> inputs{source.tensor, weights, biases};
  const bool mixes = ops::mixes_channels(spec.activation);
  ops::Epilogue epilogue{.activation = mixes ? ops::Activation::kLinear : spec.activation};
  const Layer* shortcut = mixes || finish ? nullptr : added_on_the_way(context, layer);
  if (shortcut != nullptr) {
    epilogue.residual = true;
    epilogue.last = std::get<ShortcutSpec>(shortcut->spec).activation;
    inputs.push_back(context.output_of(shortcut->sources[0]));
  }
  TensorId y =
      context.add(ops::kConvForward,
                  std::make_shared<const ops::ConvParams>(g, true, source.first, epilogue, true),
                  inputs, layer, "conv")[0];
  if (mixes) y = context.activate(y, spec.activation, layer);
  if (finish) y = finish(y);
  context.set_output(layer.index, y);
  if (shortcut != nullptr) context.set_output(shortcut->index, y);
}

}  // namespace lantern::layers
