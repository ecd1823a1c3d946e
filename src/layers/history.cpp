#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = HistorySpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "history_size",
      .field = &S::history_size,
      .otherwise = 4,
      .min = 1,
      .max = 1 << 10,
      .unit = "frames",
      .doc = "Frames joined on channels, newest first."},
};

void shape(ShapeContext&, Layer& layer) {
  layer.out = {layer.in.w, layer.in.h, layer.in.c * std::get<S>(layer.spec).history_size};
}

}  // namespace

extern const LayerDef kHistory;
const LayerDef kHistory{.name = "history",
                        .aliases = {},
                        .doc = "Joins the last frames of a sequence.",
                        .keys = keys_of<S, kKeys>,
                        .read = read_as<S, kKeys>,
                        .references = nullptr,
                        .shape = shape,
                        .parameters = nullptr};

}  // namespace lantern::layers
