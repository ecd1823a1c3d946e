#pragma once

#include <cairo.h>

#include <functional>
#include <string>
#include <string_view>

#include "draw/chart.hpp"

namespace lantern::draw {

/// A colour, 0 to 1 each.
struct Ink {
  double r, g, b, alpha = 1;
};

enum class Align { kLeft, kCentre, kRight };

/// An area in pixels.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

/// Size of the normal text of a chart, in pixels.
double em_of(ChartSize size);

/// The bytes of a picture file that `paint` draws; the size is brought into 200x150 to 8000x8000.
std::string render_canvas(ChartFormat format, ChartSize size,
                          const std::function<void(cairo_t* context, ChartSize size)>& paint);

/// Lines and text of a chart in one cairo context.
class ChartCanvas {
 public:
  /// `em`: size of the normal text in pixels; every distance is given in it.
  ChartCanvas(cairo_t* context, double em) : context_(context), em_(em) {}

  void ink(const Ink& ink) { cairo_set_source_rgba(context_, ink.r, ink.g, ink.b, ink.alpha); }
  void line(double x0, double y0, double x1, double y1, double thickness = 1);
  /// Width of a text in the selected font.
  double advance(const std::string& text);
  /// Draws with the baseline at y; returns the area covered.
  Box text(double x, double y, std::string_view raw, Align align = Align::kLeft);
  /// The same turned to the left, reading upwards.
  void upward_text(double x, double y, std::string_view raw, Align align = Align::kLeft);

 protected:
  cairo_t* context_;
  double em_;
};

}  // namespace lantern::draw
