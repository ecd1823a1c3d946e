#include "layers/head.hpp"

namespace lantern::layers {
namespace {

using S = GaussianYoloSpec;
using K = cfg::Key<S>;

constexpr std::array<cfg::Word, 4> kNmsWords{
    {{"default", 0}, {"greedynms", 1}, {"diounms", 2}, {"cornersnms", 3}}};
constexpr std::array<cfg::Word, 3> kPoints{{{"center", 0}, {"left_top", 1}, {"right_bottom", 2}}};

constexpr std::array kOwnKeys{
    K{.name = "uc_normalizer",
      .field = &S::uc_normalizer,
      .otherwise = 1,
      .doc = "Weight of the uncertainty loss."},
    K{.name = "yolo_point",
      .field = cfg::word_field<S, &S::yolo_point>(),
      .otherwise = "center",
      .doc = "Point of the box that x and y mean.",
      .words = kPoints},
};
constexpr auto kKeys = joined(head_keys<S>(kNmsWords), kOwnKeys);

void finish(S& s, cfg::SectionReader& reader) { finish_head(s, reader); }

// Mean and deviation of each of the four coordinates.
void shape(ShapeContext& context, Layer& layer) {
  shape_head(context, layer, std::get<S>(layer.spec), 8);
}

}  // namespace

extern const LayerDef kGaussianYolo;
const LayerDef kGaussianYolo{.name = "Gaussian_yolo",
                             .aliases = {},
                             .doc = "Detection output with uncertainty.",
                             .keys = keys_of<S, kKeys>,
                             .read = read_as<S, kKeys, finish>,
                             .references = nullptr,
                             .shape = shape,
                             .parameters = nullptr};

}  // namespace lantern::layers
