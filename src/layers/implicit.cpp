#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = ImplicitSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "mean", .field = &S::mean, .doc = "Mean of the initial values."},
    K{.name = "std",
      .field = &S::std,
      .otherwise = 0.2,
      .min = 0,
      .doc = "Half of the width of the uniform initialisation."},
    K{.name = "filters",
      .field = &S::filters,
      .otherwise = 128,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output channels."},
    K{.name = "atoms",
      .field = &S::atoms,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output height."},
};

void shape(ShapeContext&, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  layer.out = {1, s.atoms, s.filters};
}

std::vector<ParameterArray> parameters(const Layer& layer) {
  return {{"weights", layer.out.elements()}};
}

}  // namespace

extern const LayerDef kImplicit;
const LayerDef kImplicit{.name = "implicit",
                         .aliases = {},
                         .doc = "Learned constant; ignores its input.",
                         .keys = keys_of<S, kKeys>,
                         .read = read_as<S, kKeys>,
                         .references = nullptr,
                         .shape = shape,
                         .parameters = parameters,
                         .ignores_input = true};

}  // namespace lantern::layers
