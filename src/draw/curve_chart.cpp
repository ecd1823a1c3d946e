#include "draw/curve_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "draw/chart_canvas.hpp"
#include "draw/chart_scale.hpp"
#include "draw/color.hpp"
#include "draw/surface.hpp"

namespace lantern::draw {

namespace {

constexpr Ink kText{0.13, 0.15, 0.18};
constexpr Ink kMuted{0.42, 0.45, 0.50};
constexpr Ink kGrid{0.90, 0.91, 0.93};
constexpr Scale kUnit{0, 1};

class Painter : private ChartCanvas {
 public:
  Painter(const CurveChart& chart, cairo_t* context, ChartSize size)
      : ChartCanvas(context, em_of(size)), chart_(chart) {
    const double legend = 17 * em_;
    has_legend_ = size.width > 2.5 * legend;
    plot_ = {.left = 5.5 * em_,
             .top = 4.5 * em_,
             .right = size.width - (has_legend_ ? legend : 2 * em_),
             .bottom = size.height - 4.5 * em_};
  }

  void draw() {
    draw_axes();
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
      if (!chart_.curves[i].is_main) draw_curve(i);
    }
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
      if (chart_.curves[i].is_main) draw_curve(i);
    }
    if (has_legend_) draw_legend();
  }

 private:
  double x_of(double value) const {
    return plot_.left + kUnit.position(value) * (plot_.right - plot_.left);
  }
  double y_of(double value) const {
    return plot_.bottom - kUnit.position(value) * (plot_.bottom - plot_.top);
  }

  Ink ink_of(std::size_t index) const {
    if (chart_.curves[index].is_main) return kText;
    const Color color =
        class_color(static_cast<int>(index), static_cast<int>(chart_.curves.size()));
    constexpr double kDarker = 0.75 / 255;  // full yellow cannot be seen on white
    return {color.r * kDarker, color.g * kDarker, color.b * kDarker};
  }
  double thickness_of(std::size_t index) const {
    return (chart_.curves[index].is_main ? 0.22 : 0.12) * em_;
  }

  void draw_axes() {
    select_font(context_, em_);
    for (const Tick& tick : make_ticks(kUnit, 10)) {
      const double x = x_of(tick.value), y = y_of(tick.value);
      ink(kGrid);
      line(x, plot_.top, x, plot_.bottom);
      line(plot_.left, y, plot_.right, y);
      ink(kMuted);
      text(x, plot_.bottom + 1.5 * em_, tick.label, Align::kCentre);
      text(plot_.left - 0.6 * em_, y + 0.35 * em_, tick.label, Align::kRight);
    }
    ink(kText);
    text((plot_.left + plot_.right) / 2, plot_.bottom + 3.1 * em_, chart_.x_name, Align::kCentre);
    upward_text(1.6 * em_, (plot_.top + plot_.bottom) / 2, chart_.y_name, Align::kCentre);
    select_font(context_, 1.35 * em_, true);
    text(plot_.left, 2.6 * em_, chart_.title);
  }

  void draw_curve(std::size_t index) {
    // Millionths of the axis: the same thinning as for iterations keeps pictures small.
    constexpr std::int64_t kAcross = 1000000;
    std::vector<SeriesPoint> points;
    for (const CurveChart::Point& point : chart_.curves[index].points) {
      if (!std::isfinite(point.x)) continue;
      points.push_back({std::llround(std::clamp(point.x, 0.0, 1.0) * kAcross), point.y});
    }
    const int buckets = std::max(1, static_cast<int>(plot_.right - plot_.left));
    ink(ink_of(index));
    cairo_set_line_width(context_, thickness_of(index));
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
    cairo_new_path(context_);
    for (const SeriesPoint& point : thin_out(points, kAcross, buckets)) {
      cairo_line_to(context_, x_of(static_cast<double>(point.iteration) / kAcross),
                    y_of(point.value));
    }
    cairo_stroke(context_);
  }

  void draw_legend() {
    select_font(context_, em_);
    const double row = 1.6 * em_, x = plot_.right + 1.2 * em_;
    const auto rows = static_cast<std::size_t>(std::max(1.0, (plot_.bottom - plot_.top) / row));
    const bool has_more = chart_.curves.size() > rows;
    const std::size_t shown = has_more ? rows - 1 : chart_.curves.size();
    double y = plot_.top + em_;
    for (std::size_t i = 0; i < shown; ++i, y += row) {
      ink(ink_of(i));
      line(x, y - 0.35 * em_, x + 1.6 * em_, y - 0.35 * em_, thickness_of(i));
      ink(kText);
      text(x + 2.2 * em_, y, clean_text(chart_.curves[i].name, 24));
    }
    if (!has_more) return;
    ink(kMuted);
    text(x, y, fmt::format("and {} more", chart_.curves.size() - shown));
  }

  const CurveChart& chart_;
  Box plot_;
  bool has_legend_ = true;
};

}  // namespace

std::string render(const CurveChart& chart, ChartFormat format, ChartSize size) {
  return render_canvas(format, size, [&](cairo_t* context, ChartSize within) {
    Painter(chart, context, within).draw();
  });
}

}  // namespace lantern::draw
