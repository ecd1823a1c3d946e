#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = CostSpec;
using K = cfg::Key<S>;

constexpr std::array<cfg::Word, 3> kTypes{{{"sse", 0}, {"masked", 1}, {"smooth", 2}}};
constexpr std::array kKeys{
    K{.name = "type",
      .field = cfg::word_field<S, &S::type>(),
      .otherwise = "sse",
      .doc = "Squared error, squared error where truth is given, or smooth L1.",
      .words = kTypes},
    K{.name = "scale", .field = &S::scale, .otherwise = 1, .doc = "Factor of the gradient."},
    K{.name = "ratio", .field = &S::ratio, .doc = "Accepted; has no effect."},
};

void shape(ShapeContext&, Layer& layer) { layer.out = layer.in; }

}  // namespace

extern const LayerDef kCost;
const LayerDef kCost{.name = "cost",
                     .aliases = {},
                     .doc = "Loss against the truth.",
                     .keys = keys_of<S, kKeys>,
                     .read = read_as<S, kKeys>,
                     .references = nullptr,
                     .shape = shape,
                     .parameters = nullptr};

}  // namespace lantern::layers
