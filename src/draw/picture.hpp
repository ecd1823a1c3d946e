#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lantern::draw {

/// Interleaved 8-bit RGB, rows without gaps: pixel (x, y) starts at pixels[3 * (y * width + x)].
/// Needs pixels.size() == 3 * width * height.
struct RgbView {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::span<std::uint8_t> pixels;
};

/// One detection to draw. Centre and size are relative to the picture, as in a label file; they may
/// leave [0, 1].
struct LabelledBox {
  float x = 0, y = 0, w = 0, h = 0;
  int class_id = 0;
  std::string label;  ///< UTF-8, e.g. "dog: 0.98, cat"; empty: box only
};

/// Draws the boxes, then their labels, into `image`. Lines are max(1, int(0.002 * height)) pixels
/// wide and lie inside the box; what leaves the picture is drawn at its border, a box wholly
/// outside or with a coordinate that is not finite is left out. Labels stay inside the picture at
/// every size. `classes` spreads the colours (class_color).
void draw_detections(RgbView image, std::span<const LabelledBox> boxes, int classes);

}  // namespace lantern::draw
