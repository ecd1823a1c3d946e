#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = SamSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "from",
      .field = &S::from,
      .otherwise = cfg::Required{},
      .doc = "Feature map multiplied with the previous layer; negative: relative to this layer."},
    activation_key<S>("linear"),
};

void references(const Spec& spec, std::vector<Reference>& out) {
  out.push_back({"from", std::get<S>(spec).from});
}

void shape(ShapeContext& context, Layer& layer) {
  const Layer& source = context.layer(layer.sources.front());
  const std::string name = fmt::format("layer {} ({})", source.index, source.where);
  if (!context.joins(layer, "from", "the previous layer", layer.in, name, source.out)) return;
  if (layer.in.c != source.out.c) {
    context.error(layer, "from",
                  "the previous layer has {} channels and {} has {}; they must be equal",
                  layer.in.c, name, source.out.c);
    return;
  }
  layer.out = source.out;
}

}  // namespace

extern const LayerDef kSam;
const LayerDef kSam{.name = "sam",
                    .aliases = {},
                    .doc = "Spatial attention: element-wise product with an earlier layer.",
                    .keys = keys_of<S, kKeys>,
                    .read = read_as<S, kKeys>,
                    .references = references,
                    .shape = shape,
                    .parameters = nullptr};

}  // namespace lantern::layers
