#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = Reorg3dSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "stride",
      .field = &S::stride,
      .otherwise = 1,
      .min = 1,
      .max = kMaxStride,
      .doc = "Side of the block of cells that becomes channels."},
    K{.name = "reverse", .field = &S::reverse, .doc = "1: depth to space."},
};

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  reorganise(context, layer, s.stride, s.reverse != 0, false);
}

}  // namespace

extern const LayerDef kReorg3d;
const LayerDef kReorg3d{.name = "reorg3d",
                        .aliases = {},
                        .doc = "Space to depth, offset-major channels.",
                        .keys = keys_of<S, kKeys>,
                        .read = read_as<S, kKeys>,
                        .references = nullptr,
                        .shape = shape,
                        .parameters = nullptr};

}  // namespace lantern::layers
