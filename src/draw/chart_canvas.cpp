#include "draw/chart_canvas.hpp"

#include <cmath>

#include "draw/surface.hpp"

namespace lantern::draw {

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

}  // namespace lantern::draw
