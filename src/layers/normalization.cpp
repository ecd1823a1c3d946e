#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = NormalizationSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "alpha",
      .field = &S::alpha,
      .otherwise = 0.0001,
      .doc = "Factor of the sum of squares."},
    K{.name = "beta", .field = &S::beta, .otherwise = 0.75, .doc = "Exponent."},
    K{.name = "kappa", .field = &S::kappa, .otherwise = 1, .doc = "Added to the sum."},
    K{.name = "size",
      .field = &S::size,
      .otherwise = 5,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Window of channels."},
};

void shape(ShapeContext&, Layer& layer) { layer.out = layer.in; }

constexpr std::string_view kAliases[] = {"lrn"};

}  // namespace

extern const LayerDef kNormalization;
const LayerDef kNormalization{.name = "normalization",
                              .aliases = kAliases,
                              .doc = "Local response normalisation.",
                              .keys = keys_of<S, kKeys>,
                              .read = read_as<S, kKeys>,
                              .references = nullptr,
                              .shape = shape,
                              .parameters = nullptr};

}  // namespace lantern::layers
