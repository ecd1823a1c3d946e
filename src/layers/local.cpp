#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = LocalSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "filters",
      .field = &S::filters,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output channels."},
    K{.name = "size",
      .field = &S::size,
      .otherwise = 1,
      .min = 1,
      .max = kMaxKernel,
      .unit = "px",
      .doc = "Side of the square kernel."},
    K{.name = "stride",
      .field = &S::stride,
      .otherwise = 1,
      .min = 1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Step of the kernel."},
    K{.name = "pad",
      .field = &S::pad,
      .min = 0,
      .max = 1,
      .doc = "0: no padding; 1: one cell per side, with size=3."},
    activation_key<S>("logistic"),
};

void finish(S& s, cfg::SectionReader& reader) {
  // Darknet: the sampling takes pad as a pixel count, the shape rule as a flag; both agree for size
  // 3 only.
  if (s.pad != 0 && s.size != 3) {
    reader.diagnostics().error(reader.where("pad"),
                               "[local] pad=1 works with size=3 only, size is {}", s.size);
  }
}

Dims output_of(const S& s, const Dims& in) {
  const std::int64_t cut = s.pad != 0 ? 1 : s.size;
  return {(in.w - cut) / s.stride + 1, (in.h - cut) / s.stride + 1, s.filters};
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  if (s.pad == 0 && (s.size > layer.in.w || s.size > layer.in.h)) {
    context.error(layer, "size", "a kernel of {0}x{0} is larger than the input {1}", s.size,
                  to_string(layer.in));
    return;
  }
  const Dims out = output_of(s, layer.in);
  const double weights =
      1.0 * s.size * s.size * static_cast<double>(layer.in.c) * static_cast<double>(out.elements());
  if (weights > static_cast<double>(kMaxElements)) {
    context.error(layer, "filters", "needs {:.0f} weights, more than any machine holds", weights);
    return;
  }
  layer.out = out;
}

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  return {{"biases", layer.out.elements()},
          {"weights", s.size * s.size * layer.in.c * layer.out.elements()}};
}

}  // namespace

extern const LayerDef kLocal;
const LayerDef kLocal{.name = "local",
                      .aliases = {},
                      .doc = "Convolution with its own weights at every position.",
                      .keys = keys_of<S, kKeys>,
                      .read = read_as<S, kKeys, finish>,
                      .references = nullptr,
                      .shape = shape,
                      .parameters = parameters};

}  // namespace lantern::layers
