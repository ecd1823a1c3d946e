#pragma once

// Cairo, wrapped: for the files of this folder only (no public header names a cairo type).

#include <cairo.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "draw/color.hpp"
#include "draw/picture.hpp"

namespace lantern::draw {

struct DestroySurface {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
struct DestroyContext {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using Surface = std::unique_ptr<cairo_surface_t, DestroySurface>;
using Context = std::unique_ptr<cairo_t, DestroyContext>;

/// Throws when cairo reports a failure (it never throws by itself).
void check(cairo_status_t status);

/// Valid UTF-8 of one line: broken bytes become U+FFFD, control characters blanks; at most `limit`
/// code points, then an ellipsis. Cairo refuses a whole text with one bad byte.
std::string clean_text(std::string_view text, std::size_t limit = 200);

/// Selects the font of all our pictures at `size_px`, grey antialiasing.
void select_font(cairo_t* context, double size_px, bool bold = false);

/// Height of a line of text: what `text_mask` gives for a font size.
std::int64_t text_height(double size_px);

/// Coverage of one line of text, 0..255, `width` x `height`, rows without gaps.
struct TextMask {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> coverage;
};

/// Renders `text` (any bytes), padded by a blank border; cut at `max_width` pixels.
TextMask text_mask(std::string_view text, double size_px, std::int64_t max_width);
/// Width in pixels that `text_mask` would need.
std::int64_t text_width(std::string_view text, double size_px);

/// Fills the part of [x, x + w) x [y, y + h) that lies in the picture.
void fill_rect(RgbView image, std::int64_t x, std::int64_t y, std::int64_t w, std::int64_t h,
               Color color);
/// Blends `color` through the mask, its left top corner at (x, y); what leaves the picture is cut.
void blend(RgbView image, const TextMask& mask, std::int64_t x, std::int64_t y, Color color);

/// An Error of kInternal unless the buffer has the size its extents ask for.
void check_view(std::int64_t width, std::int64_t height, std::size_t bytes);

}  // namespace lantern::draw
