#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/image.hpp"
#include "data/pixels.hpp"
#include "data/resize.hpp"
#include "data/sample_maker.hpp"

// How a classifier's training pictures are made (reference/training.md 5.2, 5.3).
namespace lantern::data {

enum class ClassMix : std::uint8_t { kNone, kMixup, kCutmix, kMosaic, kCutmixOrMosaic };
/// What [net] mixup, cutmix and mosaic together mean for a classifier.
ClassMix class_mix(int mixup, bool cutmix, bool mosaic);

/// All of [net] that decides how a picture is made.
struct ClassAugment {
  int net_w = 224, net_h = 224;
  int channels = 3;
  int min_crop = 224, max_crop = 448;  ///< px: length the shorter side is scaled to
  float aspect = 1;                    ///< largest factor between width and height
  float angle = 0;                     ///< degrees, each way
  bool flip = true;
  float hue = 0, saturation = 1, exposure = 1;
  ClassMix mix = ClassMix::kNone;
  int blur = 0;  ///< size of the Gaussian; 1 means 15
};

/// One source's draws.
struct ClassDraws {
  float aspect = 1;
  int length = 0;        ///< px: of the shorter side
  float radians = 0;     ///< turned by
  float shift_x = 0.5F;  ///< where the window lies, 0 left to 1 right
  float shift_y = 0.5F;
  bool flip = false;
  float hue = 0, saturation = 1, exposure = 1;
};
ClassDraws draw_class_source(const ClassAugment& augment, const SampleKey& key, int source);

/// The window of the source that becomes a square of `size` pixels: pixel (x, y) of the square
/// shows the source at (x, y) -> origin + x * right + y * down, in source pixels.
struct ClassWindow {
  int size = 0;
  double origin_x = 0, origin_y = 0;
  double right_x = 1, right_y = 0;
  double down_x = 0, down_y = 1;
};
ClassWindow class_window(const ClassAugment& augment, const ClassDraws& draws, int image_w,
                         int image_h);

/// How the sources of one picture are put together.
struct ClassMixPlan {
  ClassMix mix = ClassMix::kNone;  ///< not kCutmixOrMosaic
  int sources = 1;
  /// Cutmix: the rectangle that shows the second source. Mosaic: x0, y0 is where the quadrants
  /// meet.
  pixels::Rect cut{};
  float weights[SampleMaker::kMaxSources] = {1, 0, 0, 0};  ///< of the sources' labels
};
ClassMixPlan plan_class_mix(const ClassAugment& augment, const SampleKey& key);

/// Square window, bilinear; what lies outside of the picture counts as black.
void sample_window(const Image& image, const ClassWindow& window, Planes& out);

/// Buffers of one thread.
struct ClassScratch final : SampleScratch {
  Planes square{}, sized{};
  pixels::Canvas canvas{};
  pixels::BlurBuffers blur{};
};
/// Pixels [channels][net_h][net_w] of a sample, from plan.sources pictures.
void prepare_class_picture(const ClassAugment& augment, const SampleKey& key,
                           const ClassMixPlan& plan, std::span<const SourceImage> sources,
                           ClassScratch& scratch, std::span<float> pixels);

}  // namespace lantern::data
