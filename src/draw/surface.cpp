#include "draw/surface.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"

namespace lantern::draw {
namespace {

constexpr const char* kFont = "DejaVu Sans";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
// Cairo's own limit for a side of an image surface.
constexpr std::int64_t kMaxSurfaceSide = 32767;

// Length of the valid UTF-8 sequence at the start of `text` (not empty), 0 if there is none (RFC
// 3629, table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above
// U+10FFFF).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

struct TextLayout {
  std::string text;
  double ascent = 0, descent = 0, advance = 0;  // px
  std::int64_t padding = 0;                     // px on every side

  std::int64_t width() const { return static_cast<std::int64_t>(std::ceil(advance)) + 2 * padding; }
  std::int64_t height() const {
    return static_cast<std::int64_t>(std::ceil(ascent + descent)) + padding;
  }
};

TextLayout lay_out(cairo_t* context, std::string_view text, double size_px) {
  select_font(context, size_px);
  TextLayout layout;
  layout.text = clean_text(text);
  cairo_font_extents_t font;
  cairo_font_extents(context, &font);
  cairo_text_extents_t extents;
  cairo_text_extents(context, layout.text.c_str(), &extents);
  check(cairo_status(context));
  layout.ascent = std::ceil(font.ascent);
  layout.descent = std::ceil(font.descent);
  layout.advance = extents.x_advance;
  layout.padding = std::max<std::int64_t>(1, std::lround(size_px * 0.2));
  return layout;
}

// A 1 x 1 canvas: enough to measure text.
struct Ruler {
  Surface surface{cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1)};
  Context context{cairo_create(surface.get())};
};

}  // namespace

void check(cairo_status_t status) {
  if (status == CAIRO_STATUS_SUCCESS) return;
  throw Error(status == CAIRO_STATUS_NO_MEMORY ? ErrorCode::kResource : ErrorCode::kInternal, "",
              "drawing failed: {}", cairo_status_to_string(status));
}

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string out;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == limit) return out + "\xE2\x80\xA6";  // ellipsis
    const std::size_t length = sequence_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += kReplacement;
    } else if (first < 0x20 || first == 0x7F) {
      out += ' ';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void select_font(cairo_t* context, double size_px, bool bold) {
  cairo_select_font_face(context, kFont, CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context, size_px);
  const std::unique_ptr<cairo_font_options_t, decltype(&cairo_font_options_destroy)> options(
      cairo_font_options_create(), &cairo_font_options_destroy);
  cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
  cairo_set_font_options(context, options.get());
}

std::int64_t text_height(double size_px) {
  const Ruler ruler;
  return lay_out(ruler.context.get(), "", size_px).height();
}

std::int64_t text_width(std::string_view text, double size_px) {
  const Ruler ruler;
  return lay_out(ruler.context.get(), text, size_px).width();
}

TextMask text_mask(std::string_view text, double size_px, std::int64_t max_width) {
  const Ruler ruler;
  const TextLayout layout = lay_out(ruler.context.get(), text, size_px);
  TextMask mask;
  mask.width = std::clamp<std::int64_t>(layout.width(), 0, std::min(max_width, kMaxSurfaceSide));
  mask.height = std::min(layout.height(), kMaxSurfaceSide);
  if (mask.width == 0) return mask;

  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_A8, static_cast<int>(mask.width),
                                                   static_cast<int>(mask.height)));
  check(cairo_surface_status(surface.get()));
  const Context context(cairo_create(surface.get()));
  select_font(context.get(), size_px);
  cairo_move_to(context.get(), static_cast<double>(layout.padding),
                layout.ascent + std::floor(static_cast<double>(layout.padding) / 2));
  cairo_show_text(context.get(), layout.text.c_str());
  check(cairo_status(context.get()));
  cairo_surface_flush(surface.get());

  mask.coverage.resize(static_cast<std::size_t>(mask.width * mask.height));
  const unsigned char* data = cairo_image_surface_get_data(surface.get());
  const std::int64_t stride = cairo_image_surface_get_stride(surface.get());
  for (std::int64_t y = 0; y < mask.height; ++y) {
    std::copy_n(data + y * stride, mask.width, mask.coverage.data() + y * mask.width);
  }
  return mask;
}

void fill_rect(RgbView image, std::int64_t x, std::int64_t y, std::int64_t w, std::int64_t h,
               Color color) {
  const std::int64_t left = std::clamp<std::int64_t>(x, 0, image.width);
  const std::int64_t right = std::clamp<std::int64_t>(x + w, left, image.width);
  const std::int64_t top = std::clamp<std::int64_t>(y, 0, image.height);
  const std::int64_t bottom = std::clamp<std::int64_t>(y + h, top, image.height);
  for (std::int64_t row = top; row < bottom; ++row) {
    std::uint8_t* pixel = image.pixels.data() + 3 * (row * image.width + left);
    for (std::int64_t column = left; column < right; ++column, pixel += 3) {
      pixel[0] = color.r;
      pixel[1] = color.g;
      pixel[2] = color.b;
    }
  }
}

void blend(RgbView image, const TextMask& mask, std::int64_t x, std::int64_t y, Color color) {
  const std::array<int, 3> target{color.r, color.g, color.b};
  for (std::int64_t row = std::max<std::int64_t>(0, -y);
       row < std::min(mask.height, image.height - y); ++row) {
    for (std::int64_t column = std::max<std::int64_t>(0, -x);
         column < std::min(mask.width, image.width - x); ++column) {
      const int alpha = mask.coverage[static_cast<std::size_t>(row * mask.width + column)];
      std::uint8_t* pixel = image.pixels.data() + 3 * ((y + row) * image.width + x + column);
      for (std::size_t c = 0; c < 3; ++c) {
        pixel[c] =
            static_cast<std::uint8_t>((pixel[c] * (255 - alpha) + target[c] * alpha + 127) / 255);
      }
    }
  }
}

void check_view(std::int64_t width, std::int64_t height, std::size_t bytes) {
  // 2^40 pixels: far above any picture, far below an overflow of the product.
  constexpr std::int64_t kMaxSide = std::int64_t{1} << 20;
  if (width < 0 || height < 0 || width > kMaxSide || height > kMaxSide ||
      static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3 != bytes) {
    throw Error(ErrorCode::kInternal, "",
                "a picture of {} x {} pixels comes with {} bytes, want 3 a pixel", width, height,
                bytes);
  }
}

}  // namespace lantern::draw
