#include "layers/recurrence.hpp"

namespace lantern::layers {
namespace {

using S = CrnnSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "output",
      .field = &S::output,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output channels."},
    K{.name = "hidden",
      .field = &S::hidden,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "State channels."},
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
    activation_key<S>("logistic"),
    batch_normalize_key<S>(),
    K{.name = "xnor", .field = &S::xnor, .doc = "1: binary weights and inputs; forces groups=1."},
    K{.name = "shortcut", .field = &S::shortcut, .doc = "1: the new state also adds the old one."},
};

void finish(S& s, cfg::SectionReader&) {
  if (s.pad != 0) s.padding = s.size / 2;
  if (s.groups < 1 || s.xnor != 0) s.groups = 1;
  if (s.size == 1) s.dilation = 1;
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  double bflops = 0;
  for (const SubLayer& part : sub_layers(s, layer.in)) {
    const ConvShape& conv = *part.conv;
    if (!conv.check(context, layer, layer.in)) return;
    const Dims out{conv.out_w(layer.in.w), conv.out_h(layer.in.h), conv.filters};
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
  layer.bflops = bflops;
}

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  return arrays_of(sub_layers(s, layer.in), s.batch_normalize != 0);
}

}  // namespace

std::vector<SubLayer> sub_layers(const CrnnSpec& s, const Dims& in) {
  const auto part = [&](std::string_view name, std::int64_t from, std::int64_t to) {
    return SubLayer{.name = name,
                    .inputs = from,
                    .outputs = to,
                    .conv = ConvShape{.filters = to,
                                      .channels = from,
                                      .groups = s.groups,
                                      .size = s.size,
                                      .stride_x = s.stride,
                                      .stride_y = s.stride,
                                      .padding = s.padding,
                                      .dilation = s.dilation}};
  };
  return {part("input.", in.c, s.hidden), part("self.", s.hidden, s.hidden),
          part("output.", s.hidden, s.output)};
}

extern const LayerDef kCrnn;
const LayerDef kCrnn{.name = "crnn",
                     .aliases = {},
                     .doc = "Recurrent layer of convolutions.",
                     .keys = keys_of<S, kKeys>,
                     .read = read_as<S, kKeys, finish>,
                     .references = nullptr,
                     .shape = shape,
                     .parameters = parameters};

}  // namespace lantern::layers
