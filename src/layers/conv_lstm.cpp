#include "layers/recurrence.hpp"

namespace lantern::layers {
namespace {

using S = ConvLstmSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "output",
      .field = &S::output,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output channels."},
    K{.name = "size",
      .field = &S::size,
      .otherwise = 3,
      .min = 1,
      .max = kMaxKernel,
      .unit = "px",
      .doc = "Side of the square kernels."},
    K{.name = "stride",
      .field = &S::stride,
      .otherwise = 1,
      .min = 1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Step of the kernels; the state must keep its size."},
    K{.name = "dilation",
      .field = &S::dilation,
      .otherwise = 1,
      .min = 1,
      .max = kMaxKernel,
      .doc = "Distance between kernel taps."},
    K{.name = "pad", .field = &S::pad, .doc = "Not 0: padding = size / 2."},
    K{.name = "padding",
      .field = &S::padding,
      .min = 0,
      .max = kMaxKernel,
      .unit = "px",
      .doc = "Cells added on each side when pad=0."},
    K{.name = "groups",
      .field = &S::groups,
      .otherwise = 1,
      .doc = "Grouped convolutions. Below 1: 1."},
    activation_key<S>("linear"),
    batch_normalize_key<S>(),
    K{.name = "xnor", .field = &S::xnor, .doc = "1: binary weights and inputs; forces groups=1."},
    K{.name = "peephole", .field = &S::peephole, .doc = "1: the gates also see the cell state."},
    K{.name = "bottleneck",
      .field = &S::bottleneck,
      .doc = "1: one shared convolution over state and input."},
    K{.name = "state_constrain",
      .field = &S::state_constrain,
      .otherwise = -1,
      .min = 0,
      .doc = "Clamp of the cell state to +-value; 0: none; not given: 32 * time_steps."},
    K{.name = "shortcut", .field = &S::shortcut, .doc = "1: partial residual, with bottleneck."},
    K{.name = "lstm_activation",
      .field = cfg::word_field<S, &S::lstm_activation>(),
      .otherwise = "tanh",
      .doc = "Activation of cell and candidate.",
      .words = kActivationWords},
    K{.name = "time_normalizer",
      .field = &S::time_normalizer,
      .otherwise = 1,
      .doc = "Factor of the gradient to the previous time step, with bottleneck."},
};

void finish(S& s, cfg::SectionReader&) {
  if (s.pad != 0) s.padding = s.size / 2;
  if (s.groups < 1 || s.xnor != 0) s.groups = 1;
  if (s.size == 1) s.dilation = 1;
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  if (s.bottleneck != 0 && layer.in.c != s.output) {
    context.error(layer, "bottleneck",
                  "bottleneck=1 needs as many input channels as output={}, there are {}", s.output,
                  layer.in.c);
    return;
  }
  double bflops = 0;
  for (const SubLayer& part : sub_layers(s, layer.in)) {
    const ConvShape& conv = *part.conv;
    if (!conv.check(context, layer, layer.in)) return;
    const Dims out{conv.out_w(layer.in.w), conv.out_h(layer.in.h), s.output};
    if (out.w != layer.in.w || out.h != layer.in.h) {
      context.error(
          layer, "size",
          "its convolutions change {} to {}, but the state must keep its size; use stride=1 pad=1 "
          "and an odd size",
          to_string(layer.in), to_string(out));
      return;
    }
    bflops += conv.bflops(out, s.xnor != 0);
  }
  layer.out = {layer.in.w, layer.in.h, s.output};
  layer.bflops = bflops + (s.peephole != 0 ? 12.0 : 9.0) *
                              static_cast<double>(layer.out.elements()) *
                              context.network().minibatch() / 1e9;
}

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  return arrays_of(sub_layers(s, layer.in), s.batch_normalize != 0);
}

}  // namespace

std::vector<SubLayer> sub_layers(const ConvLstmSpec& s, const Dims& in) {
  const std::int64_t state = s.output;
  std::vector<SubLayer> parts;
  const auto add = [&](std::initializer_list<std::string_view> names, std::int64_t from) {
    for (const std::string_view name : names) {
      parts.push_back({.name = name,
                       .inputs = from,
                       .outputs = state,
                       .conv = ConvShape{.filters = state,
                                         .channels = from,
                                         .groups = s.groups,
                                         .size = s.size,
                                         .stride_x = s.stride,
                                         .stride_y = s.stride,
                                         .padding = s.padding,
                                         .dilation = s.dilation}});
    }
  };
  if (s.peephole != 0) add({"vf.", "vi.", "vo."}, state);
  if (s.bottleneck != 0) {
    add({"wf."}, 2 * state);
  } else {
    add({"wf.", "wi.", "wg.", "wo."}, state);
  }
  // With a bottleneck the gates see its output, which has the channels of the state.
  add({"uf.", "ui.", "ug.", "uo."}, s.bottleneck != 0 ? state : in.c);
  return parts;
}

extern const LayerDef kConvLstm;
const LayerDef kConvLstm{.name = "conv_lstm",
                         .aliases = {},
                         .doc = "Long short-term memory of convolutions.",
                         .keys = keys_of<S, kKeys>,
                         .read = read_as<S, kKeys, finish>,
                         .references = nullptr,
                         .shape = shape,
                         .parameters = parameters};

}  // namespace lantern::layers
