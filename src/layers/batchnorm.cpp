#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = BatchnormSpec;
constexpr std::array<cfg::Key<S>, 0> kKeys{};

void shape(ShapeContext&, Layer& layer) { layer.out = layer.in; }

std::vector<ParameterArray> parameters(const Layer& layer) {
  const std::int64_t c = layer.in.c;
  return {{"biases", c}, {"scales", c}, {"rolling_mean", c}, {"rolling_variance", c}};
}

}  // namespace

extern const LayerDef kBatchnorm;
const LayerDef kBatchnorm{.name = "batchnorm",
                          .aliases = {},
                          .doc = "Batch normalisation of the previous layer.",
                          .keys = keys_of<S, kKeys>,
                          .read = read_as<S, kKeys>,
                          .references = nullptr,
                          .shape = shape,
                          .parameters = parameters};

}  // namespace lantern::layers
