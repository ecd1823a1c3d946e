#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = LstmSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "output",
      .field = &S::output,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Size of state and output."},
    batch_normalize_key<S>(),
};

void shape(ShapeContext&, Layer& layer) { layer.out = {1, 1, std::get<S>(layer.spec).output}; }

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const bool bn = s.batch_normalize != 0;
  std::vector<ParameterArray> arrays;
  for (const char* name : {"wf.", "wi.", "wg.", "wo."}) {
    append_connected_arrays(arrays, name, s.output, s.output, bn);
  }
  for (const char* name : {"uf.", "ui.", "ug.", "uo."}) {
    append_connected_arrays(arrays, name, layer.in.elements(), s.output, bn);
  }
  return arrays;
}

}  // namespace

extern const LayerDef kLstm;
const LayerDef kLstm{.name = "lstm",
                     .aliases = {},
                     .doc = "Long short-term memory.",
                     .keys = keys_of<S, kKeys>,
                     .read = read_as<S, kKeys>,
                     .references = nullptr,
                     .shape = shape,
                     .parameters = parameters};

}  // namespace lantern::layers
