#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = ScaleChannelsSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "from",
      .field = &S::from,
      .otherwise = cfg::Required{},
      .doc = "Feature map that is scaled; negative: relative to this layer."},
    K{.name = "scale_wh",
      .field = &S::scale_wh,
      .min = 0,
      .max = 1,
      .doc = "0: the previous layer has one factor per channel (1x1xC); 1: one per pixel (WxHx1)."},
    activation_key<S>("linear"),
};

void references(const Spec& spec, std::vector<Reference>& out) {
  out.push_back({"from", std::get<S>(spec).from});
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const Layer& source = context.layer(layer.sources.front());
  const Dims& in = layer.in;
  const Dims& map = source.out;
  if (s.scale_wh != 0) {
    if (in.c != 1) {
      context.error(layer, "scale_wh",
                    "scale_wh=1 wants one channel of factors from the previous layer, it has {}",
                    to_string(in));
      return;
    }
    if (!context.joins(layer, "from", "the previous layer", in,
                       fmt::format("layer {} ({})", source.index, source.where), map)) {
      return;
    }
  } else if (in.w != 1 || in.h != 1 || in.c != map.c) {
    context.error(
        layer, "from",
        "wants factors of 1x1x{} for layer {} ({}, {}) from the previous layer, it has {}", map.c,
        source.index, source.where, to_string(map), to_string(in));
    return;
  }
  layer.out = map;
}

}  // namespace

extern const LayerDef kScaleChannels;
const LayerDef kScaleChannels{
    .name = "scale_channels",
    .aliases = {},
    .doc = "Multiplies a feature map with factors per channel (squeeze and excitation) or pixel.",
    .keys = keys_of<S, kKeys>,
    .read = read_as<S, kKeys>,
    .references = references,
    .shape = shape,
    .parameters = nullptr};

}  // namespace lantern::layers
