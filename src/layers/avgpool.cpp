#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = AvgpoolSpec;
constexpr std::array<cfg::Key<S>, 0> kKeys{};

void shape(ShapeContext&, Layer& layer) { layer.out = {1, 1, layer.in.c}; }

constexpr std::string_view kAliases[] = {"avg"};

}  // namespace

extern const LayerDef kAvgpool;
const LayerDef kAvgpool{.name = "avgpool",
                        .aliases = kAliases,
                        .doc = "Mean of each channel over the whole map.",
                        .keys = keys_of<S, kKeys>,
                        .read = read_as<S, kKeys>,
                        .references = nullptr,
                        .shape = shape,
                        .parameters = nullptr};

}  // namespace lantern::layers
