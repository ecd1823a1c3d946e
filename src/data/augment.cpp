#include "data/augment.hpp"

#include <algorithm>
#include <cmath>

namespace lantern::data {

namespace {

Rng draw(const SampleKey& key, std::string_view name, int source = 0) {
  return Rng(key.seed, name, static_cast<std::uint64_t>(key.iteration), source_index(key, source));
}

/// Truncation toward zero that no configured number can overflow.
int truncated(double value) {
  constexpr double kReach = 1 << 28;
  return static_cast<int>(std::clamp(std::isnan(value) ? 0.0 : value, -kReach, kReach));
}

}  // namespace

float random_scale(Rng& rng, float scale) {
  if (scale == 0) scale = 1;
  const float low = std::min(1.0F, scale);
  const float high = std::max(1.0F, scale);
  const float value = rng.uniform(low, high);
  return rng.coin() ? value : 1 / value;
}

MixKind detector_mix(int mixup, bool cutmix, bool mosaic, std::vector<std::string>& messages) {
  const int code = mosaic && cutmix ? 4 : (cutmix ? 2 : (mosaic ? 3 : mixup));
  switch (code) {
    case 0:
      return MixKind::kNone;
    case 1:
      return MixKind::kMixup;
    case 2:
      messages.emplace_back("cutmix has no effect on a detector");
      return MixKind::kNone;
    case 3:
      return MixKind::kMosaic;
    case 4:
      messages.emplace_back("cutmix has no effect on a detector; mosaic alone is used");
      return MixKind::kMosaic;
    default:
      messages.push_back(
          fmt::format("mixup={} is unknown, want 0 (off), 1 (mixup), 3 (mosaic) or 4", mixup));
      return MixKind::kNone;
  }
}

SamplePlan plan_sample(const AugmentSpec& spec, const SampleKey& key) {
  SamplePlan plan;
  if (spec.mix == MixKind::kNone || draw(key, "augment.mix").coin()) return plan;
  plan.mix = spec.mix;
  plan.sources = spec.mix == MixKind::kMosaic ? 4 : 2;
  if (spec.mix == MixKind::kMosaic) {
    Rng rng = draw(key, "augment.cut");
    plan.cut_x =
        static_cast<int>(rng.uniform_int(truncated(spec.net_w * 0.2), truncated(spec.net_w * 0.8)));
    plan.cut_y =
        static_cast<int>(rng.uniform_int(truncated(spec.net_h * 0.2), truncated(spec.net_h * 0.8)));
  }
  return plan;
}

SourceDraws draw_source(const AugmentSpec& spec, const SampleKey& key, int source) {
  SourceDraws draws;
  Rng zoom = draw(key, "augment.zoom", source);
  for (float& value : draws.zoom) value = zoom.uniform();
  Rng jitter = draw(key, "augment.jitter", source);
  for (float& value : draws.jitter) value = jitter.uniform();
  draws.flip = spec.flip && draw(key, "augment.flip", source).coin();
  draws.hue = draw(key, "augment.hue", source).uniform(-spec.hue, spec.hue);
  Rng saturation = draw(key, "augment.saturation", source);
  draws.saturation = random_scale(saturation, spec.saturation);
  Rng exposure = draw(key, "augment.exposure", source);
  draws.exposure = random_scale(exposure, spec.exposure);
  if (spec.blur != 0) {
    const std::int64_t kind = draw(key, "augment.blur", source).uniform_int(0, 2);
    draws.blur = kind == 2 ? std::max(spec.blur, 0) : static_cast<int>(kind);
  }
  draws.noise = spec.gaussian_noise > 0 && draw(key, "augment.noise", source).coin();
  draws.corner = draw(key, "augment.corner", source).coin();
  return draws;
}

CropGeometry crop_geometry(const AugmentSpec& spec, const SourceDraws& draws, int image_w,
                           int image_h, int quadrant) {
  const double ow = image_w, oh = image_h;
  const int dw = truncated(ow * spec.jitter);
  const int dh = truncated(oh * spec.jitter);

  const double zoom = spec.resize > 0 ? spec.resize : 1;
  const double down = zoom > 1 ? 1 / zoom : zoom;
  const double up = zoom < 1 ? 1 / zoom : zoom;
  const auto bounds = [&](double side, double& low, double& high) {
    low = truncated(side * (1 - 1 / down) / 2);
    high = zoom < 1 ? 0 : truncated(side * (1 - 1 / up) / 2);
  };
  double low_w = 0, high_w = 0, low_h = 0, high_h = 0;
  bounds(ow, low_w, high_w);
  bounds(oh, low_h, high_h);

  const auto jittered = [](int reach, float r) { return truncated(-reach + 2.0 * reach * r); };
  // Left and top zoom together, right and bottom too.
  const auto zoomed = [](int value, double low, double high, float q) {
    return truncated(value + low + q * (high - low));
  };
  CropGeometry crop;
  crop.left = zoomed(jittered(dw, draws.jitter[0]), low_w, high_w, draws.zoom[0]);
  crop.right = zoomed(jittered(dw, draws.jitter[1]), low_w, high_w, draws.zoom[1]);
  crop.top = zoomed(jittered(dh, draws.jitter[2]), low_h, high_h, draws.zoom[0]);
  crop.bottom = zoomed(jittered(dh, draws.jitter[3]), low_h, high_h, draws.zoom[1]);

  if (spec.letter_box) {
    const double net_ratio = static_cast<double>(spec.net_w) / spec.net_h;
    if (ow / oh / net_ratio > 1) {
      const double more = (ow / net_ratio - oh) / 2;
      crop.top = truncated(crop.top - more);
      crop.bottom = truncated(crop.bottom - more);
    } else {
      const double more = (oh * net_ratio - ow) / 2;
      crop.left = truncated(crop.left - more);
      crop.right = truncated(crop.right - more);
    }
  }

  if (quadrant >= 0 && draws.corner) {
    // The picture is pushed toward the outer corner of its quadrant; mirrored afterwards when flip
    // is set.
    const bool is_left = quadrant == 0 || quadrant == 2;
    const bool is_top = quadrant < 2;
    if (is_left != draws.flip) {
      crop.right += crop.left;
      crop.left = 0;
    } else {
      crop.left += crop.right;
      crop.right = 0;
    }
    if (is_top) {
      crop.bottom += crop.top;
      crop.top = 0;
    } else {
      crop.top += crop.bottom;
      crop.bottom = 0;
    }
  }

  crop.w = image_w - crop.left - crop.right;
  crop.h = image_h - crop.top - crop.bottom;
  const bool misses = crop.w <= 0 || crop.h <= 0 || crop.left >= image_w || crop.top >= image_h ||
                      crop.left + crop.w <= 0 || crop.top + crop.h <= 0;
  // Darknet: right and bottom keep their values here and still enter the shifts of a mosaic.
  if (misses) crop = {.left = 0, .right = 0, .top = 0, .bottom = 0, .w = image_w, .h = image_h};
  return crop;
}

TruthBox transform_box(const Label& label, const CropGeometry& crop, int image_w, int image_h,
                       bool flip) {
  const auto along = [](double centre, double size, double image, double start, double extent,
                        double& low, double& high) {
    low = ((centre - size / 2) * image - start) / extent;
    high = ((centre + size / 2) * image - start) / extent;
  };
  double left = 0, right = 0, top = 0, bottom = 0;
  along(label.x, label.w, image_w, crop.left, crop.w, left, right);
  along(label.y, label.h, image_h, crop.top, crop.h, top, bottom);
  if (flip) {
    const double swap = left;
    left = 1 - right;
    right = 1 - swap;
  }
  for (double* edge : {&left, &right, &top, &bottom}) *edge = std::clamp(*edge, 0.0, 1.0);
  return {.x = static_cast<float>((left + right) / 2),
          .y = static_cast<float>((top + bottom) / 2),
          .w = static_cast<float>(right - left),
          .h = static_cast<float>(bottom - top),
          .class_id = static_cast<float>(label.class_id)};
}

}  // namespace lantern::data
