#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = UpsampleSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "stride",
      .field = &S::stride,
      .otherwise = 2,
      .min = -kMaxStride,
      .max = kMaxStride,
      .doc = "Above 0: enlarge so many times by repetition; below 0: sum blocks of so many cells "
             "squared."},
    K{.name = "scale", .field = &S::scale, .otherwise = 1, .doc = "Factor of the output."},
};

void finish(S& s, cfg::SectionReader& reader) {
  if (s.stride == 0)
    reader.diagnostics().error(reader.where("stride"),
                               "[upsample] stride is 0, want another number");
}

void shape(ShapeContext& context, Layer& layer) {
  const std::int64_t stride = std::get<S>(layer.spec).stride;
  if (stride == 0) return;
  const Dims& in = layer.in;
  if (stride > 0) {
    layer.out = {in.w * stride, in.h * stride, in.c};
  } else if (in.w < -stride || in.h < -stride) {
    context.error(layer, "stride", "blocks of {0}x{0} are larger than the input {1}", -stride,
                  to_string(in));
  } else {
    layer.out = {in.w / -stride, in.h / -stride, in.c};
  }
}

}  // namespace

extern const LayerDef kUpsample;
const LayerDef kUpsample{.name = "upsample",
                         .aliases = {},
                         .doc = "Enlarges a map by repeating cells, or sums blocks.",
                         .keys = keys_of<S, kKeys>,
                         .read = read_as<S, kKeys, finish>,
                         .references = nullptr,
                         .shape = shape,
                         .parameters = nullptr};

}  // namespace lantern::layers
