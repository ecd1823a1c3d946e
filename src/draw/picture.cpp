#include "draw/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "draw/color.hpp"
#include "draw/surface.hpp"

namespace lantern::draw {
namespace {

constexpr double kSmallestFont = 6;  // px; below it no letter is readable
constexpr double kNormalFont = 9;    // px, for pictures up to about 430 x 320

// Pixels [left, right) x [top, bottom).
struct Rect {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;

  std::int64_t overlap(const Rect& other) const {
    const std::int64_t w = std::min(right, other.right) - std::max(left, other.left);
    const std::int64_t h = std::min(bottom, other.bottom) - std::max(top, other.top);
    return w > 0 && h > 0 ? w * h : 0;
  }
};

// The box in pixels, cut to the picture, at least one pixel wide and high; nothing when no part of
// it is inside.
std::optional<Rect> to_pixels(const LabelledBox& box, const RgbView& image) {
  if (!std::isfinite(box.x) || !std::isfinite(box.y) || !std::isfinite(box.w) ||
      !std::isfinite(box.h))
    return {};
  if (box.w < 0 || box.h < 0) return {};
  struct Range {
    std::int64_t low, high;
  };
  const auto range = [](double centre, double size, std::int64_t extent) -> std::optional<Range> {
    const auto full = static_cast<double>(extent);
    const double low = (centre - size / 2) * full;
    const double high = (centre + size / 2) * full;
    if (high < 0 || low > full) return {};
    const std::int64_t first =
        std::min<std::int64_t>(std::llround(std::clamp(low, 0.0, full)), extent - 1);
    const std::int64_t last = std::llround(std::clamp(high, 0.0, full));
    return Range{first, std::max(last, first + 1)};
  };
  const std::optional<Range> columns = range(box.x, box.w, image.width);
  const std::optional<Range> rows = range(box.y, box.h, image.height);
  if (!columns || !rows) return {};
  return Rect{columns->low, rows->low, columns->high, rows->high};
}

void draw_outline(RgbView image, const Rect& r, std::int64_t line, Color color) {
  const std::int64_t w = r.right - r.left;
  const std::int64_t h = r.bottom - r.top;
  const std::int64_t across = std::min(line, w);
  const std::int64_t down = std::min(line, h);
  fill_rect(image, r.left, r.top, w, down, color);
  fill_rect(image, r.left, r.bottom - down, w, down, color);
  fill_rect(image, r.left, r.top, across, h, color);
  fill_rect(image, r.right - across, r.top, across, h, color);
}

// Text grows with the picture and shrinks again where the label would not fit.
double font_size(const std::string& label, const RgbView& image) {
  const double side =
      std::sqrt(static_cast<double>(image.width) * static_cast<double>(image.height));
  double size = std::max(kNormalFont, 0.024 * side);
  for (int round = 0; round < 2; ++round) {  // widths are not quite linear in the size
    const std::int64_t width = text_width(label, size);
    if (width > image.width) size *= static_cast<double>(image.width) / static_cast<double>(width);
    const std::int64_t height = text_height(size);
    if (2 * height > image.height) {
      size *= static_cast<double>(image.height) / static_cast<double>(2 * height);
    }
  }
  return std::max(kSmallestFont, size);
}

// Where a label of w x h pixels goes: above the box, inside at its top, below it, at its right or
// inside at its bottom; the first place that covers no other label, else the one that covers least.
Rect place(const Rect& box, std::int64_t w, std::int64_t h, const RgbView& image,
           const std::vector<Rect>& taken) {
  struct Corner {
    std::int64_t x, y;
  };
  const std::array<Corner, 6> candidates{{{box.left, box.top - h},
                                          {box.left, box.top},
                                          {box.right - w, box.top - h},
                                          {box.left, box.bottom},
                                          {box.right, box.top},
                                          {box.left, box.bottom - h}}};
  std::optional<Rect> best;
  std::int64_t best_cost = 0;
  for (const Corner& corner : candidates) {
    const std::int64_t x =
        std::clamp<std::int64_t>(corner.x, 0, std::max<std::int64_t>(0, image.width - w));
    const std::int64_t y =
        std::clamp<std::int64_t>(corner.y, 0, std::max<std::int64_t>(0, image.height - h));
    const Rect rect{x, y, std::min(x + w, image.width), std::min(y + h, image.height)};
    std::int64_t cost = 0;
    for (const Rect& other : taken) cost += rect.overlap(other);
    if (!best || cost < best_cost) {
      best = rect;
      best_cost = cost;
    }
    if (best_cost == 0) break;
  }
  return *best;
}

}  // namespace

void draw_detections(RgbView image, std::span<const LabelledBox> boxes, int classes) {
  check_view(image.width, image.height, image.pixels.size());
  if (image.pixels.empty()) return;

  // max(1, int(0.002 * H)): reference, drawing of detections.
  const std::int64_t line = std::max<std::int64_t>(1, image.height / 500);
  for (const LabelledBox& box : boxes) {
    if (const std::optional<Rect> rect = to_pixels(box, image)) {
      draw_outline(image, *rect, line, class_color(box.class_id, classes));
    }
  }
  // Labels come after all boxes: no line crosses a text.
  std::vector<Rect> taken;
  for (const LabelledBox& box : boxes) {
    if (box.label.empty()) continue;
    const std::optional<Rect> rect = to_pixels(box, image);
    if (!rect) continue;
    const TextMask mask = text_mask(box.label, font_size(box.label, image), image.width);
    if (mask.width == 0) continue;
    const Rect spot = place(*rect, mask.width, mask.height, image, taken);
    const Color background = class_color(box.class_id, classes);
    fill_rect(image, spot.left, spot.top, spot.right - spot.left, spot.bottom - spot.top,
              background);
    blend(image, mask, spot.left, spot.top, text_color_on(background));
    taken.push_back(spot);
  }
}

}  // namespace lantern::draw
