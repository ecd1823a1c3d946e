#include "data/class_augment.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "data/augment.hpp"

namespace lantern::data {

namespace {

Rng draw(const SampleKey& key, std::string_view name, int source = 0) {
  return Rng(key.seed, name, static_cast<std::uint64_t>(key.iteration), source_index(key, source));
}

// A side's cut, between two tenths of it.
int draw_cut(Rng& rng, int side, int low_tenths, int high_tenths) {
  return static_cast<int>(rng.uniform_int(side * low_tenths / 10, side * high_tenths / 10));
}

}  // namespace

ClassMix class_mix(int mixup, bool cutmix, bool mosaic) {
  if (cutmix && mosaic) return ClassMix::kCutmixOrMosaic;
  if (cutmix) return ClassMix::kCutmix;
  if (mosaic) return ClassMix::kMosaic;
  switch (mixup) {
    case 1:
      return ClassMix::kMixup;
    case 2:
      return ClassMix::kCutmix;
    case 3:
      return ClassMix::kMosaic;
    case 4:
      return ClassMix::kCutmixOrMosaic;
    default:
      return ClassMix::kNone;
  }
}

ClassDraws draw_class_source(const ClassAugment& augment, const SampleKey& key, int source) {
  ClassDraws draws;
  Rng aspect = draw(key, "class.aspect", source);
  draws.aspect = random_scale(aspect, augment.aspect);
  const auto [low, high] = std::minmax(augment.min_crop, augment.max_crop);
  draws.length = static_cast<int>(draw(key, "class.length", source).uniform_int(low, high));
  const float reach = augment.angle * std::numbers::pi_v<float> / 180;
  draws.radians = draw(key, "class.angle", source).uniform(-reach, reach);
  Rng shift = draw(key, "class.shift", source);
  draws.shift_x = shift.uniform();
  draws.shift_y = shift.uniform();
  draws.flip = augment.flip && draw(key, "class.flip", source).coin();
  draws.hue = draw(key, "class.hue", source).uniform(-augment.hue, augment.hue);
  Rng saturation = draw(key, "class.saturation", source);
  draws.saturation = random_scale(saturation, augment.saturation);
  Rng exposure = draw(key, "class.exposure", source);
  draws.exposure = random_scale(exposure, augment.exposure);
  return draws;
}

ClassWindow class_window(const ClassAugment& augment, const ClassDraws& draws, int image_w,
                         int image_h) {
  const double w = image_w, h = image_h;
  const double aspect = draws.aspect;
  const int size = std::max(augment.net_w, augment.net_h);
  const double shorter = std::max(1.0, h < w * aspect ? h : std::floor(w * aspect));
  const double scale = std::max(1, draws.length) / shorter;
  // Half of what the scaled picture is larger than the window.
  const double room_x = std::max(0.0, (w * scale / aspect - size) / 2);
  const double room_y = std::max(0.0, (h * scale - size) / 2);
  const double shift_x = (2 * draws.shift_x - 1) * room_x;
  const double shift_y = (2 * draws.shift_y - 1) * room_y;
  // u = ((x - size/2) + shift_x) a / s, v = ((y - size/2) + shift_y) / s, turned around the
  // picture's centre.
  const double cos = std::cos(static_cast<double>(draws.radians));
  const double sin = std::sin(static_cast<double>(draws.radians));
  const double u = (shift_x - size / 2.0) * aspect / scale;
  const double v = (shift_y - size / 2.0) / scale;
  return {.size = size,
          .origin_x = cos * u - sin * v + w / 2,
          .origin_y = sin * u + cos * v + h / 2,
          .right_x = cos * aspect / scale,
          .right_y = sin * aspect / scale,
          .down_x = -sin / scale,
          .down_y = cos / scale};
}

ClassMixPlan plan_class_mix(const ClassAugment& augment, const SampleKey& key) {
  ClassMixPlan plan;
  if (augment.mix == ClassMix::kNone) return plan;
  // Darknet: one coin for a whole share of the batch. Here each picture has its own.
  if (!draw(key, "class.mix").coin()) return plan;
  plan.mix = augment.mix;
  if (plan.mix == ClassMix::kCutmixOrMosaic) {
    plan.mix = draw(key, "class.mix.kind").coin() ? ClassMix::kCutmix : ClassMix::kMosaic;
  }
  const int w = augment.net_w, h = augment.net_h;
  const auto area = static_cast<float>(std::int64_t{w} * h);
  Rng rng = draw(key, "class.cut");
  if (plan.mix == ClassMix::kMixup) {
    plan.sources = 2;
    plan.weights[0] = plan.weights[1] = 0.5F;
  } else if (plan.mix == ClassMix::kCutmix) {
    plan.sources = 2;
    const int cut_w = draw_cut(rng, w, 3, 8);
    const int cut_h = draw_cut(rng, h, 3, 8);
    plan.cut.x0 = static_cast<int>(rng.uniform_int(0, w - cut_w - 1));
    plan.cut.y0 = static_cast<int>(rng.uniform_int(0, h - cut_h - 1));
    plan.cut.x1 = plan.cut.x0 + cut_w;
    plan.cut.y1 = plan.cut.y0 + cut_h;
    plan.weights[1] = static_cast<float>(std::int64_t{cut_w} * cut_h) / area;
    plan.weights[0] = 1 - plan.weights[1];
  } else {
    plan.sources = 4;
    plan.cut.x0 = draw_cut(rng, w, 2, 8);
    plan.cut.y0 = draw_cut(rng, h, 2, 8);
    plan.cut.x1 = w;
    plan.cut.y1 = h;
    for (int s = 0; s < 4; ++s) {
      const pixels::Rect shown = quadrant_of(plan.cut, s);
      plan.weights[s] = static_cast<float>(std::int64_t{shown.w()} * shown.h()) / area;
    }
  }
  return plan;
}

void sample_window(const Image& image, const ClassWindow& window, Planes& out) {
  const int size = window.size;
  const int channels = image.c;
  out.w = out.h = size;
  out.c = channels;
  out.data.resize(out.plane() * static_cast<std::size_t>(channels));
  const std::size_t plane = out.plane();
  // In units of levels / 255; pixels of the 2 x 2 neighbourhood that lie outside are black.
  const auto row_bytes = static_cast<std::ptrdiff_t>(image.row_bytes());
  std::size_t at = 0;
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x, ++at) {
      const double sx = window.origin_x + x * window.right_x + y * window.down_x;
      const double sy = window.origin_y + x * window.right_y + y * window.down_y;
      if (!(sx > -1 && sy > -1 && sx < image.w && sy < image.h)) {
        for (int c = 0; c < channels; ++c) out.data[static_cast<std::size_t>(c) * plane + at] = 0;
        continue;
      }
      const int left = static_cast<int>(std::floor(sx));
      const int top = static_cast<int>(std::floor(sy));
      const auto fx = static_cast<float>(sx - left);
      const auto fy = static_cast<float>(sy - top);
      const bool has_left = left >= 0, has_right = left + 1 < image.w;
      const bool has_top = top >= 0, has_bottom = top + 1 < image.h;
      const float w00 = has_left && has_top ? (1 - fx) * (1 - fy) / 255 : 0;
      const float w01 = has_right && has_top ? fx * (1 - fy) / 255 : 0;
      const float w10 = has_left && has_bottom ? (1 - fx) * fy / 255 : 0;
      const float w11 = has_right && has_bottom ? fx * fy / 255 : 0;
      // Neighbours without weight are read at a pixel that is there.
      const int x0 = std::max(left, 0) * channels;
      const int x1 = std::min(left + 1, image.w - 1) * channels;
      const std::uint8_t* upper = image.pixels.data() + std::max(top, 0) * row_bytes;
      const std::uint8_t* lower = image.pixels.data() + std::min(top + 1, image.h - 1) * row_bytes;
      for (int c = 0; c < channels; ++c) {
        out.data[static_cast<std::size_t>(c) * plane + at] =
            w00 * upper[x0 + c] + w01 * upper[x1 + c] + w10 * lower[x0 + c] + w11 * lower[x1 + c];
      }
    }
  }
}

namespace {

// The picture of one source at network size, in scratch.
const Planes& prepare_source(const ClassAugment& augment, const SampleKey& key, int number,
                             const Image& image, ClassScratch& scratch) {
  LANTERN_ASSERT(image.c == augment.channels, "a picture has the channels of the network");
  const ClassDraws draws = draw_class_source(augment, key, number);
  sample_window(image, class_window(augment, draws, image.w, image.h), scratch.square);
  if (draws.flip) flip_horizontal(scratch.square);
  if (draws.hue != 0 || draws.saturation != 1 || draws.exposure != 1) {
    distort_hsv(scratch.square, draws.hue, draws.saturation, draws.exposure);
  }
  if (augment.net_w == augment.net_h) return scratch.square;
  scratch.sized = resize(scratch.square, augment.net_w, augment.net_h);
  return scratch.sized;
}

void copy_rect(const Planes& from, const pixels::Rect& rect, std::span<float> to) {
  for (int c = 0; c < from.c; ++c) {
    for (int y = rect.y0; y < rect.y1; ++y) {
      const std::size_t row = from.plane() * static_cast<std::size_t>(c) +
                              static_cast<std::size_t>(y) * static_cast<std::size_t>(from.w);
      std::copy(from.data.begin() + static_cast<std::ptrdiff_t>(row) + rect.x0,
                from.data.begin() + static_cast<std::ptrdiff_t>(row) + rect.x1,
                to.begin() + static_cast<std::ptrdiff_t>(row) + rect.x0);
    }
  }
}

// Gaussian of the finished picture, with p = 1/4; in 8 bits, as the other blur.
void blur_picture(const ClassAugment& augment, const SampleKey& key, ClassScratch& scratch,
                  std::span<float> pixels) {
  constexpr int kUsual = 15;
  if (augment.blur <= 0 || draw(key, "class.blur").uniform_int(0, 3) != 0) return;
  // Darknet: an even size ends in an exception; here it is the next odd one.
  const int size = augment.blur == 1 ? kUsual : augment.blur | 1;
  scratch.canvas.reset(augment.net_w, augment.net_h, augment.channels);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    scratch.canvas.data[i] =
        static_cast<std::uint8_t>(std::clamp(pixels[i], 0.0F, 1.0F) * 255 + 0.5F);
  }
  gaussian_blur(scratch.canvas, size, scratch.blur);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<float>(scratch.canvas.data[i]) / 255;
  }
}

}  // namespace

void prepare_class_picture(const ClassAugment& augment, const SampleKey& key,
                           const ClassMixPlan& plan, std::span<const SourceImage> sources,
                           ClassScratch& scratch, std::span<float> pixels) {
  LANTERN_ASSERT(sources.size() == static_cast<std::size_t>(plan.sources),
                 "one source for each of the plan");
  const pixels::Rect whole{0, 0, augment.net_w, augment.net_h};
  for (int s = 0; s < plan.sources; ++s) {
    const Image& image = *sources[static_cast<std::size_t>(s)].image;
    const Planes& picture = prepare_source(augment, key, s, image, scratch);
    LANTERN_ASSERT(pixels.size() == picture.data.size(), "pixels hold one picture");
    if (plan.mix == ClassMix::kMixup) {
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        pixels[i] = s == 0 ? picture.data[i] / 2 : pixels[i] + picture.data[i] / 2;
      }
    } else if (plan.mix == ClassMix::kMosaic) {
      copy_rect(picture, quadrant_of(plan.cut, s), pixels);
    } else {
      copy_rect(picture, s == 0 ? whole : plan.cut, pixels);
    }
  }
  blur_picture(augment, key, scratch, pixels);
}

}  // namespace lantern::data
