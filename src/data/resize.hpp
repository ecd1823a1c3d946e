#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/image.hpp"

namespace lantern::data {

/// Float picture in planes [c][h][w], values in [0, 1].
struct Planes {
  int w = 0;
  int h = 0;
  int c = 3;
  std::vector<float> data{};

  std::size_t plane() const { return static_cast<std::size_t>(w) * static_cast<std::size_t>(h); }
};

Planes to_planes(const Image& image);
/// Rounds value * 255 to the nearest level and clamps.
Image to_image(const Planes& planes);

/// The two bilinear laws of Darknet. Corner-aligned (test, map, valid): first and last samples
/// coincide, sx = x (W - 1) / (w - 1). Half-pixel (training): sx = (x + 1/2) W / w - 1/2, clamped
/// to the picture.
enum class ResizeMode { kCornerAligned, kHalfPixel };

Planes resize(const Planes& src, int w, int h, ResizeMode mode = ResizeMode::kCornerAligned);

/// Where the resized picture lies inside a net input of [net_h][net_w] that keeps its shape.
struct Letterbox {
  int net_w = 0, net_h = 0;
  int new_w = 0, new_h = 0;  ///< size of the resized picture, at least 1
  int left = 0, top = 0;     ///< where it is pasted
};
Letterbox letterbox_geometry(int image_w, int image_h, int net_w, int net_h);
/// Corner-aligned picture on grey 0.5.
Planes letterbox(const Planes& src, int net_w, int net_h);

/// Centre and size relative to a picture.
struct Box {
  float x = 0, y = 0, w = 0, h = 0;
};
/// From units of the net input to units of the image. The half difference is not truncated (as
/// Darknet).
Box undo_letterbox(const Box& box, const Letterbox& letterbox);

/// Mirrors columns.
void flip_horizontal(Planes& planes);
/// Float HSV: hue shifted by `hue` (a fraction of the circle, wraps), saturation and value
/// multiplied, RGB clamped to [0, 1]. One channel: multiplied by `exposure`.
void distort_hsv(Planes& planes, float hue, float saturation, float exposure);
/// Window with its corner at (left, top); outside of the picture the edge pixels are repeated.
Planes crop(const Planes& src, int left, int top, int w, int h);
struct Extent {
  int w = 0, h = 0;
};
/// The shorter side becomes `size`, the longer one follows by integer division.
Extent shorter_side_to(Extent image, int size);
/// What a classifier sees in evaluation: shorter side scaled to net_w (corner-aligned), centre crop
/// net_w x net_h; where the crop leaves the picture its edge is repeated.
Planes classifier_eval_crop(const Planes& src, int net_w, int net_h);

/// Which parts of a picture the network looks at.
enum class EvalView : std::uint8_t {
  kWhole,                  ///< all of it, stretched or letterboxed
  kCentreCrop,             ///< classifier_eval_crop()
  kCentreCropAndMirrored,  ///< the same, plain and mirrored
  /// Stretched to 32 pixels more than the net each way; windows at (+-32, +-32) and (0, 0), plain
  /// and mirrored.
  kTenCrops,
};

struct EvalSpec {
  int net_w = 416;
  int net_h = 416;
  int channels = 3;
  bool letter_box = false;
  ResizeMode mode = ResizeMode::kCornerAligned;
  EvalView view = EvalView::kWhole;  ///< the others take neither letter_box nor mode

  int views() const {
    if (view == EvalView::kTenCrops) return 10;
    return view == EvalView::kCentreCropAndMirrored ? 2 : 1;
  }
  /// Of all views of one picture.
  std::size_t floats() const {
    return static_cast<std::size_t>(views()) * static_cast<std::size_t>(channels) *
           static_cast<std::size_t>(net_h) * static_cast<std::size_t>(net_w);
  }
};
/// Decoded picture to net input [views][c][net_h][net_w] as `test`, `map`, `valid` and `recall` of
/// detectors and `valid` and `predict` of classifiers see it. `out` has spec.floats() elements;
/// image.c must be spec.channels.
void prepare_eval_image(const Image& image, const EvalSpec& spec, std::span<float> out);
Planes prepare_eval_image(const Image& image, const EvalSpec& spec);

}  // namespace lantern::data
