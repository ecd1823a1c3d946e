#include "layers/recurrence.hpp"

namespace lantern::layers {
namespace {

using S = RnnSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "output",
      .field = &S::output,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output size."},
    K{.name = "hidden",
      .field = &S::hidden,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "State size."},
    activation_key<S>("logistic"),
    batch_normalize_key<S>(),
    K{.name = "logistic",
      .field = &S::logistic,
      .min = 0,
      .max = 2,
      .doc = "Activation of the recurrent sub-layer: 0 as the others, 1 logistic, 2 loggy."},
    K{.name = "shortcut", .field = &S::shortcut, .doc = "1: the new state also adds the old one."},
};

void shape(ShapeContext&, Layer& layer) { layer.out = {1, 1, std::get<S>(layer.spec).output}; }

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  return arrays_of(sub_layers(s, layer.in), s.batch_normalize != 0);
}

}  // namespace

std::vector<SubLayer> sub_layers(const RnnSpec& s, const Dims& in) {
  return {{"input.", in.elements(), s.hidden},
          {"self.", s.hidden, s.hidden},
          {"output.", s.hidden, s.output}};
}

extern const LayerDef kRnn;
const LayerDef kRnn{.name = "rnn",
                    .aliases = {},
                    .doc = "Recurrent layer of connected sub-layers.",
                    .keys = keys_of<S, kKeys>,
                    .read = read_as<S, kKeys>,
                    .references = nullptr,
                    .shape = shape,
                    .parameters = parameters};

}  // namespace lantern::layers
