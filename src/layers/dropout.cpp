#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = DropoutSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "probability",
      .field = &S::probability,
      .otherwise = 0.2,
      .min = 0,
      .max = 1,
      .doc = "Share of the values that training sets to 0."},
    K{.name = "dropblock",
      .field = &S::dropblock,
      .doc = "1: DropBlock, drops squares in place of single values."},
    K{.name = "dropblock_size_rel",
      .field = &S::dropblock_size_rel,
      .min = 0,
      .max = 1,
      .doc = "Side of the square as a share of the map."},
    K{.name = "dropblock_size_abs",
      .field = &S::dropblock_size_abs,
      .min = 0,
      .max = kMaxFilters,
      .unit = "px",
      .doc = "Side of the square; stands above dropblock_size_rel. Neither given: 7.",
      .truncates = true},
};

void finish(S& s, cfg::SectionReader&) {
  if (s.dropblock != 0 && s.dropblock_size_abs == 0 && s.dropblock_size_rel == 0)
    s.dropblock_size_abs = 7;
}

void shape(ShapeContext&, Layer& layer) { layer.out = layer.in; }

}  // namespace

extern const LayerDef kDropout;
const LayerDef kDropout{.name = "dropout",
                        .aliases = {},
                        .doc = "Sets random values to 0 in training.",
                        .keys = keys_of<S, kKeys>,
                        .read = read_as<S, kKeys, finish>,
                        .references = nullptr,
                        .shape = shape,
                        .parameters = nullptr};

}  // namespace lantern::layers
