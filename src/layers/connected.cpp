#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = ConnectedSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "output",
      .field = &S::output,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output size."},
    activation_key<S>("logistic"),
    K{.name = "batch_normalize",
      .field = &S::batch_normalize,
      .min = 0,
      .max = 1,
      .doc = "1: batch normalisation."},
};

void shape(ShapeContext&, Layer& layer) { layer.out = {1, 1, std::get<S>(layer.spec).output}; }

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  std::vector<ParameterArray> arrays;
  append_connected_arrays(arrays, "", layer.in.elements(), s.output, s.batch_normalize != 0);
  return arrays;
}

constexpr std::string_view kAliases[] = {"conn"};

}  // namespace

extern const LayerDef kConnected;
const LayerDef kConnected{.name = "connected",
                          .aliases = kAliases,
                          .doc = "Fully connected layer.",
                          .keys = keys_of<S, kKeys>,
                          .read = read_as<S, kKeys>,
                          .references = nullptr,
                          .shape = shape,
                          .parameters = parameters};

}  // namespace lantern::layers
