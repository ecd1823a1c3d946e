#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = ActivationSpec;
constexpr std::array kKeys{activation_key<S>("linear")};

void shape(ShapeContext&, Layer& layer) { layer.out = layer.in; }

}  // namespace

extern const LayerDef kActivation;
const LayerDef kActivation{.name = "activation",
                           .aliases = {},
                           .doc = "Activation of the previous layer.",
                           .keys = keys_of<S, kKeys>,
                           .read = read_as<S, kKeys>,
                           .references = nullptr,
                           .shape = shape,
                           .parameters = nullptr};

}  // namespace lantern::layers
