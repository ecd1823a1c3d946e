#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = CropSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "crop_height",
      .field = &S::crop_height,
      .otherwise = 1,
      .min = 1,
      .max = 1 << 16,
      .unit = "px",
      .doc = "Output height."},
    K{.name = "crop_width",
      .field = &S::crop_width,
      .otherwise = 1,
      .min = 1,
      .max = 1 << 16,
      .unit = "px",
      .doc = "Output width."},
    K{.name = "flip", .field = &S::flip, .doc = "1: random flip in training."},
    K{.name = "angle", .field = &S::angle, .unit = "degrees", .doc = "Range of random rotation."},
    K{.name = "saturation",
      .field = &S::saturation,
      .otherwise = 1,
      .doc = "Range of random saturation."},
    K{.name = "exposure",
      .field = &S::exposure,
      .otherwise = 1,
      .doc = "Range of random exposure."},
    K{.name = "shift", .field = &S::shift, .doc = "Range of a random offset per channel."},
    K{.name = "noadjust", .field = &S::noadjust, .doc = "0: output = 2 * x - 1; 1: unchanged."},
};

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  if (s.crop_width > layer.in.w || s.crop_height > layer.in.h) {
    context.error(layer, s.crop_width > layer.in.w ? "crop_width" : "crop_height",
                  "a crop of {}x{} is larger than the input {}", s.crop_width, s.crop_height,
                  to_string(layer.in));
    return;
  }
  layer.out = {s.crop_width, s.crop_height, layer.in.c};
}

}  // namespace

extern const LayerDef kCrop;
const LayerDef kCrop{.name = "crop",
                     .aliases = {},
                     .doc = "Random crop in training, centre crop otherwise.",
                     .keys = keys_of<S, kKeys>,
                     .read = read_as<S, kKeys>,
                     .references = nullptr,
                     .shape = shape,
                     .parameters = nullptr};

}  // namespace lantern::layers
