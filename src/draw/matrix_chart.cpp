#include "draw/matrix_chart.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "draw/chart_canvas.hpp"
#include "draw/surface.hpp"

namespace lantern::draw {

namespace {

constexpr Ink kText{0.13, 0.15, 0.18};
constexpr Ink kWhite{1, 1, 1};
constexpr Ink kFrame{0.75, 0.77, 0.80};
constexpr Ink kFull{0.10, 0.32, 0.65};

class Painter : private ChartCanvas {
 public:
  Painter(const MatrixChart& chart, cairo_t* context, ChartSize size)
      : ChartCanvas(context, em_of(size)), chart_(chart), side_(chart.labels.size()) {
    // A quarter at most for labels, so that small pictures keep a table.
    const double labels = std::min(11 * em_, 0.25 * std::min(size.width, size.height));
    table_ = {.left = 2.5 * em_ + labels,
              .top = 4.5 * em_,
              .right = size.width - 2 * em_,
              .bottom = size.height - 2.5 * em_ - labels};
    width_ = (table_.right - table_.left) / static_cast<double>(std::max<std::size_t>(side_, 1));
    height_ = (table_.bottom - table_.top) / static_cast<double>(std::max<std::size_t>(side_, 1));
  }

  void draw() {
    select_font(context_, em_);
    for (std::size_t row = 0; row < side_; ++row) draw_row(row);
    ink(kFrame);
    cairo_set_line_width(context_, 1);
    cairo_rectangle(context_, table_.left, table_.top, table_.right - table_.left,
                    table_.bottom - table_.top);
    cairo_stroke(context_);
    ink(kText);
    draw_labels();
    text((table_.left + table_.right) / 2, table_.top - 0.6 * em_, chart_.column_name,
         Align::kCentre);
    upward_text(1.6 * em_, (table_.top + table_.bottom) / 2, chart_.row_name, Align::kCentre);
    select_font(context_, 1.35 * em_, true);
    text(2.5 * em_, 2.2 * em_, chart_.title);
  }

 private:
  void draw_row(std::size_t row) {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < side_; ++c) sum += chart_.counts[row * side_ + c];
    const double top = table_.top + static_cast<double>(row) * height_;
    for (std::size_t column = 0; column < side_; ++column) {
      const std::int64_t count = chart_.counts[row * side_ + column];
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(sum);
      const double left = table_.left + static_cast<double>(column) * width_;
      // Never quite white: a single mistake among thousands is to be seen.
      const double depth = 0.08 + 0.92 * share;
      ink({1 - depth * (1 - kFull.r), 1 - depth * (1 - kFull.g), 1 - depth * (1 - kFull.b)});
      cairo_rectangle(context_, left, top, width_, height_);
      cairo_fill(context_);
      const std::string number = std::to_string(count);
      if (height_ < 1.2 * em_ || advance(number) + 0.4 * em_ > width_) continue;
      ink(share > 0.5 ? kWhite : kText);
      text(left + width_ / 2, top + height_ / 2 + 0.35 * em_, number, Align::kCentre);
    }
  }

  void draw_labels() {
    const auto every = [&](double extent) {
      return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(1.15 * em_ / extent)));
    };
    for (std::size_t i = 0; i < side_; i += every(height_)) {
      text(table_.left - 0.5 * em_,
           table_.top + (static_cast<double>(i) + 0.5) * height_ + 0.35 * em_,
           clean_text(chart_.labels[i], 18), Align::kRight);
    }
    for (std::size_t i = 0; i < side_; i += every(width_)) {
      upward_text(table_.left + (static_cast<double>(i) + 0.5) * width_ + 0.35 * em_,
                  table_.bottom + 0.5 * em_, clean_text(chart_.labels[i], 18), Align::kRight);
    }
  }

  const MatrixChart& chart_;
  std::size_t side_;
  Box table_;
  double width_ = 0, height_ = 0;  // of a cell, px
};

}  // namespace

std::string render(const MatrixChart& chart, ChartFormat format, ChartSize size) {
  LANTERN_ASSERT(chart.counts.size() == chart.labels.size() * chart.labels.size(),
                 "a count for every cell");
  return render_canvas(format, size, [&](cairo_t* context, ChartSize within) {
    Painter(chart, context, within).draw();
  });
}

}  // namespace lantern::draw
