#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = EmptySpec;
constexpr std::array<cfg::Key<S>, 0> kKeys{};

void shape(ShapeContext&, Layer& layer) { layer.out = layer.in; }

constexpr std::string_view kAliases[] = {"silence"};

}  // namespace

extern const LayerDef kEmpty;
const LayerDef kEmpty{.name = "empty",
                      .aliases = kAliases,
                      .doc = "Passes its input on.",
                      .keys = keys_of<S, kKeys>,
                      .read = read_as<S, kKeys>,
                      .references = nullptr,
                      .shape = shape,
                      .parameters = nullptr};

}  // namespace lantern::layers
