#include "layers/lower_context.hpp"
#include "ops/conv/conv.hpp"

// Convolutions of a network that only infers: the batch norm is part of the weights, what follows
// it part of the convolution.
namespace lantern::layers {

using graph::TensorId;

namespace {

// The shortcut behind this convolution, when the convolution can add it on the way.
const Layer* added_on_the_way(const LowerContext& context, const Layer& layer) {
  const auto next = static_cast<std::size_t>(layer.index) + 1;
  const std::vector<Layer>& layers = context.network().layers;
  if (!context.options().fuse_layers || next >= layers.size() ||
      !context.only_next_reads(layer.index))
    return nullptr;
  const auto* shortcut = std::get_if<ShortcutSpec>(&layers[next].spec);
  if (shortcut == nullptr || shortcut->from.size() != 1 ||
      shortcut->weights_type != WeightsType::kNone || ops::mixes_channels(shortcut->activation))
    return nullptr;
  const Layer& source = layers[static_cast<std::size_t>(layers[next].sources[0])];
  return source.index != layer.index && source.out == layer.out ? &layers[next] : nullptr;
}

}  // namespace

void lower_folded(LowerContext& context, const Layer& layer, const ConvolutionalSpec& spec,
                  const ops::ConvGeometry& g, const FinishConvolution& finish) {
  const TensorId biases = context.parameter(layer, "biases", Shape{g.oc});
  const TensorId weights =
      context.parameter(layer, "weights", Shape{g.oc, g.ic / g.groups, g.kh, g.kw});
  if (spec.batch_normalize != 0) context.mark_folded(layer);
  const DeferredPart* slice = context.deferred(layer.index - 1);
  std::vector<TensorId> inputs{slice ? slice->inputs[0] : context.previous(layer), weights, biases};
  const std::int64_t first = slice ? std::get<ops::ChannelSlice>(slice->part.source).first : 0;
  const bool mixes = ops::mixes_channels(spec.activation);
  ops::Epilogue epilogue{.activation = mixes ? ops::Activation::kLinear : spec.activation};
  const Layer* shortcut = mixes || finish ? nullptr : added_on_the_way(context, layer);
  if (shortcut != nullptr) {
    epilogue.residual = true;
    epilogue.last = std::get<ShortcutSpec>(shortcut->spec).activation;
    inputs.push_back(context.output_of(shortcut->sources[0]));
  }
  TensorId y = context.add(ops::kConvForward,
                           std::make_shared<const ops::ConvParams>(g, true, first, epilogue),
                           inputs, layer, "conv")[0];
  if (mixes) y = context.activate(y, spec.activation, layer);
  if (finish) y = finish(y);
  context.set_output(layer.index, y);
  if (shortcut != nullptr) context.set_output(shortcut->index, y);
}

}  // namespace lantern::layers
