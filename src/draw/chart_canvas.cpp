#include "draw/chart_canvas.hpp"

#include <cairo-svg.h>

#include <algorithm>
#include <cmath>

#include "draw/surface.hpp"

namespace lantern::draw {

namespace {

cairo_status_t append(void* closure, const unsigned char* data, unsigned int size) {
  try {  // called from C, which an exception must not cross
    static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), size);
    return CAIRO_STATUS_SUCCESS;
  } catch (...) {
    return CAIRO_STATUS_NO_MEMORY;
  }
}

}  // namespace

double em_of(ChartSize size) {
  return std::clamp(std::min(size.width, size.height) / 55.0, 9.0, 40.0);
}

std::string render_canvas(ChartFormat format, ChartSize size,
                          const std::function<void(cairo_t*, ChartSize)>& paint) {
  size = {std::clamp(size.width, 200, 8000), std::clamp(size.height, 150, 8000)};
  std::string bytes;
  const bool as_svg = format == ChartFormat::kSvg;
  const Surface surface(
      as_svg ? cairo_svg_surface_create_for_stream(&append, &bytes, size.width, size.height)
             : cairo_image_surface_create(CAIRO_FORMAT_RGB24, size.width, size.height));
  check(cairo_surface_status(surface.get()));
  {
    const Context context(cairo_create(surface.get()));
    cairo_set_source_rgb(context.get(), 1, 1, 1);
    cairo_paint(context.get());
    paint(context.get(), size);
    check(cairo_status(context.get()));
  }
  if (as_svg) {
    cairo_surface_finish(surface.get());
    check(cairo_surface_status(surface.get()));
  } else {
    check(cairo_surface_write_to_png_stream(surface.get(), &append, &bytes));
  }
  return bytes;
}

void ChartCanvas::line(double x0, double y0, double x1, double y1, double thickness) {
  // Half pixels: a line of odd width falls on whole pixels and stays sharp.
  cairo_set_line_width(context_, thickness);
  cairo_move_to(context_, std::floor(x0) + 0.5, std::floor(y0) + 0.5);
  cairo_line_to(context_, std::floor(x1) + 0.5, std::floor(y1) + 0.5);
  cairo_stroke(context_);
}

double ChartCanvas::advance(const std::string& text) {
  cairo_text_extents_t extents;
  cairo_text_extents(context_, text.c_str(), &extents);
  return extents.x_advance;
}

Box ChartCanvas::text(double x, double y, std::string_view raw, Align align) {
  const std::string clean = clean_text(raw, 120);
  const double w = advance(clean);
  const double left = align == Align::kLeft ? x : align == Align::kCentre ? x - w / 2 : x - w;
  cairo_move_to(context_, left, y);
  cairo_show_text(context_, clean.c_str());
  return {left, y - em_, left + w, y + 0.3 * em_};
}

void ChartCanvas::upward_text(double x, double y, std::string_view raw, Align align) {
  cairo_save(context_);
  cairo_translate(context_, x, y);
  cairo_rotate(context_, -std::acos(-1.0) / 2);
  text(0, 0, raw, align);
  cairo_restore(context_);
}

}  // namespace lantern::draw
