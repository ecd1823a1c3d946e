#include "layers/recurrence.hpp"

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
  return arrays_of(sub_layers(s, layer.in), s.batch_normalize != 0);
}

}  // namespace

std::vector<SubLayer> sub_layers(const LstmSpec& s, const Dims& in) {
  std::vector<SubLayer> parts;
  for (const char* name : {"wf.", "wi.", "wg.", "wo."}) parts.push_back({name, s.output, s.output});
  for (const char* name : {"uf.", "ui.", "ug.", "uo."})
    parts.push_back({name, in.elements(), s.output});
  return parts;
}

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
