#include "draw/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "draw/chart_canvas.hpp"
#include "draw/chart_scale.hpp"
#include "draw/surface.hpp"

namespace lantern::draw {
namespace {

constexpr Ink kText{0.13, 0.15, 0.18};
constexpr Ink kMuted{0.42, 0.45, 0.50};
constexpr Ink kGrid{0.90, 0.91, 0.93};
constexpr Ink kFaintGrid{0.955, 0.96, 0.97};
constexpr Ink kLoss{0.16, 0.42, 0.80};
constexpr Ink kRawLoss{0.16, 0.42, 0.80, 0.28};
constexpr Ink kRate{0.55, 0.52, 0.45, 0.9};
constexpr Ink kFault{0.80, 0.35, 0.0};
// Red for the first (mAP), green for the second (contrastive accuracy), violet beyond.
constexpr std::array<Ink, 3> kPercents{
    {{0.80, 0.16, 0.18}, {0.10, 0.55, 0.28}, {0.50, 0.25, 0.65}}};

template <typename Point>
std::vector<Point> sorted(std::vector<Point> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.iteration < b.iteration; });
  return points;
}

// One chart being drawn: the context, the plot's rectangle in pixels and the scales of its axes.
class Painter : private ChartCanvas {
 public:
  Painter(const ChartData& data, cairo_t* context, ChartSize size)
      : ChartCanvas(context, em_of(size)),
        data_(data),
        width_(size.width),
        height_(size.height),
        losses_(sorted(data.losses)),
        rates_(sorted(data.rates)) {
    for (const PercentSeries& series : data.percents)
      percents_.push_back({series.name, sorted(series.points)});
    iterations_ = std::max<std::int64_t>(data.max_iterations, 1);
    if (!losses_.empty()) iterations_ = std::max(iterations_, losses_.back().iteration);
    if (!rates_.empty()) iterations_ = std::max(iterations_, rates_.back().iteration);
    for (const PercentSeries& series : percents_) {
      if (!series.points.empty())
        iterations_ = std::max(iterations_, series.points.back().iteration);
    }
    loss_ = loss_scale(losses_, data.max_loss);
    plot_ = {.left = 5.5 * em_,
             .top = 5.2 * em_,
             .right = width_ - (percents_.empty() ? 2 : 5) * em_,
             .bottom = height_ - 6 * em_};
  }

  void draw() {
    draw_grid();
    cairo_save(context_);
    cairo_rectangle(context_, plot_.left, plot_.top - em_ * 0.2,
                    plot_.right - plot_.left + em_ * 0.2, plot_.bottom - plot_.top + em_ * 0.4);
    cairo_clip(context_);
    draw_rates();
    draw_losses();
    draw_faults();
    for (std::size_t i = 0; i < percents_.size(); ++i) draw_percents(percents_[i], percent_ink(i));
    cairo_restore(context_);
    for (std::size_t i = 0; i < percents_.size(); ++i)
      label_percents(percents_[i], percent_ink(i), i == 0);
    draw_head();
    draw_foot();
  }

 private:
  static Ink percent_ink(std::size_t index) {
    return kPercents[std::min(index, kPercents.size() - 1)];
  }
  double x_of(std::int64_t iteration) const {
    const double part = static_cast<double>(iteration) / static_cast<double>(iterations_);
    return plot_.left + std::clamp(part, 0.0, 1.0) * (plot_.right - plot_.left);
  }
  double y_of(const Scale& scale, double value) const {
    return plot_.bottom - scale.position(value) * (plot_.bottom - plot_.top);
  }

  void draw_grid() {
    select_font(context_, em_);
    const int rows = std::clamp(static_cast<int>((plot_.bottom - plot_.top) / (3 * em_)), 2, 12);
    const int columns = std::clamp(static_cast<int>((plot_.right - plot_.left) / (6 * em_)), 2, 12);
    if (!losses_.empty()) {
      for (const Tick& tick : make_ticks(loss_, rows)) {
        const double y = y_of(loss_, tick.value);
        ink(tick.label.empty() ? kFaintGrid : kGrid);
        line(plot_.left, y, plot_.right, y);
        ink(kMuted);
        text(plot_.left - 0.6 * em_, y + 0.35 * em_, tick.label, Align::kRight);
      }
    }
    const Scale across{0, static_cast<double>(iterations_)};
    for (const Tick& tick : make_ticks(across, columns)) {
      if (tick.value != std::floor(tick.value)) continue;  // no half iterations in a run of three
      const double x = x_of(static_cast<std::int64_t>(tick.value));
      ink(kGrid);
      line(x, plot_.top, x, plot_.bottom);
      ink(kMuted);
      text(x, plot_.bottom + 1.5 * em_, short_count(tick.value), Align::kCentre);
    }
    if (!percents_.empty()) {
      for (const Tick& tick : make_ticks(kPercentScale, rows)) {
        const double y = y_of(kPercentScale, tick.value);
        ink(kMuted);
        line(plot_.right, y, plot_.right + 0.4 * em_, y);
        if (losses_.empty()) {
          ink(kGrid);
          line(plot_.left, y, plot_.right, y);
        }
        ink(percent_ink(0));
        text(plot_.right + 0.7 * em_, y + 0.35 * em_, tick.label + " %");
      }
    }
    ink(kMuted);
    line(plot_.left, plot_.bottom, plot_.right, plot_.bottom);
    line(plot_.left, plot_.top, plot_.left, plot_.bottom);
    if (!percents_.empty()) line(plot_.right, plot_.top, plot_.right, plot_.bottom);
    ink(kText);
    text((plot_.left + plot_.right) / 2, plot_.bottom + 3.1 * em_, "iteration", Align::kCentre);
    upward_text(1.4 * em_, (plot_.top + plot_.bottom) / 2,
                loss_.logarithmic ? "loss (logarithmic)" : "loss", Align::kCentre);
  }

  static std::string short_count(double value) {
    if (value >= 1e6) return short_number(value / 1e6) + "M";
    if (value >= 1e4) return short_number(value / 1e3) + "k";
    return short_number(value);
  }

  void polyline(std::span<const SeriesPoint> points, const Scale& scale) {
    const int buckets = std::max(1, static_cast<int>(plot_.right - plot_.left));
    const std::vector<SeriesPoint> few = thin_out(points, iterations_, buckets);
    cairo_new_path(context_);
    for (const SeriesPoint& point : few)
      cairo_line_to(context_, x_of(point.iteration), y_of(scale, point.value));
    if (few.size() == 1)
      cairo_line_to(context_, x_of(few[0].iteration) + 1, y_of(scale, few[0].value));
    cairo_stroke(context_);
  }

  void draw_losses() {
    std::vector<SeriesPoint> raw;
    std::vector<SeriesPoint> average;
    for (const LossPoint& point : losses_) {
      raw.push_back({point.iteration, point.loss});
      average.push_back({point.iteration, point.average});
    }
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_width(context_, 0.07 * em_);
    ink(kRawLoss);
    polyline(raw, loss_);
    cairo_set_line_width(context_, 0.14 * em_);
    ink(kLoss);
    polyline(average, loss_);
  }

  void draw_rates() {
    double largest = 0;
    for (const SeriesPoint& rate : rates_) {
      if (std::isfinite(rate.value)) largest = std::max(largest, rate.value);
    }
    if (largest <= 0) return;
    // Lowest quarter of the plot: there to show where the rate changes, not to be read off.
    const Scale scale{0, 4 * largest};
    cairo_set_line_width(context_, 0.1 * em_);
    const std::array<double, 2> dashes{0.5 * em_, 0.3 * em_};
    cairo_set_dash(context_, dashes.data(), static_cast<int>(dashes.size()), 0);
    ink(kRate);
    polyline(rates_, scale);
    cairo_set_dash(context_, nullptr, 0, 0);
  }

  // Iterations whose loss was not a number: a line at the first, a tick at every one of them.
  void draw_faults() {
    bool first = true;
    double last_x = -1;
    for (const LossPoint& point : losses_) {
      if (std::isfinite(point.loss) && std::isfinite(point.average)) continue;
      const double x = x_of(point.iteration);
      if (!first && x - last_x < 1) continue;
      last_x = x;
      ink(kFault);
      line(x, first ? plot_.top : plot_.bottom - em_, x, plot_.bottom);
      if (first) {
        select_font(context_, em_);
        const bool at_right = x > (plot_.left + plot_.right) / 2;
        text(x + (at_right ? -0.4 : 0.4) * em_, plot_.top + 1.2 * em_,
             fmt::format("loss not finite at iteration {}", point.iteration),
             at_right ? Align::kRight : Align::kLeft);
      }
      first = false;
    }
  }

  void draw_percents(const PercentSeries& series, const Ink& colour) {
    cairo_set_line_width(context_, 0.14 * em_);
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
    ink(colour);
    std::vector<SeriesPoint> percents;
    for (const SeriesPoint& point : series.points)
      percents.push_back({point.iteration, 100 * point.value});
    polyline(percents, kPercentScale);
    if (percents.size() > 200) return;
    for (const SeriesPoint& point : percents) {
      if (!std::isfinite(point.value)) continue;
      cairo_arc(context_, x_of(point.iteration), y_of(kPercentScale, point.value), 0.22 * em_, 0,
                2 * std::acos(-1.0));
      cairo_fill(context_);
    }
  }

  // The best value (if asked for), then the last, then as many others as find room.
  void label_percents(const PercentSeries& series, const Ink& colour, bool mark_best) {
    std::vector<SeriesPoint> order;
    for (const SeriesPoint& point : series.points) {
      if (std::isfinite(point.value)) order.push_back(point);
    }
    if (order.empty()) return;
    std::reverse(order.begin(), order.end());
    if (mark_best) {
      // >= : of equals the earliest, which stands last here
      auto best = order.begin();
      for (auto it = order.begin(); it != order.end(); ++it) {
        if (it->value >= best->value) best = it;
      }
      ink(colour);
      cairo_set_line_width(context_, 0.14 * em_);
      cairo_new_path(context_);
      cairo_arc(context_, x_of(best->iteration), y_of(kPercentScale, 100 * best->value), 0.5 * em_,
                0, 2 * std::acos(-1.0));
      cairo_stroke(context_);
      std::rotate(order.begin(), best, best + 1);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool is_best = mark_best && i == 0;
      select_font(context_, is_best ? em_ : 0.85 * em_, is_best);
      label_point(order[i], is_best ? "best {:.1f} %" : "{:.1f}", colour, is_best);
    }
  }

  void label_point(const SeriesPoint& point, const char* format, const Ink& colour, bool must) {
    const std::string label = fmt::format(fmt::runtime(format), 100 * point.value);
    const double half = advance(label) / 2;
    const double x = std::clamp(x_of(point.iteration), plot_.left + half,
                                std::max(plot_.left + half, plot_.right - half));
    const double y = y_of(kPercentScale, 100 * point.value);
    // Above the point, below it where the plot ends.
    const double baseline = y - 2 * em_ < plot_.top ? y + 1.6 * em_ : y - 0.8 * em_;
    const Box area{x - half - 0.3 * em_, baseline - em_, x + half + 0.3 * em_,
                   baseline + 0.25 * em_};
    if (!must &&
        std::any_of(labels_.begin(), labels_.end(), [&](const Box& b) { return b.meets(area); }))
      return;
    labels_.push_back(area);
    cairo_set_source_rgba(context_, 1, 1, 1, 0.6);
    cairo_rectangle(context_, area.left, area.top, area.right - area.left, area.bottom - area.top);
    cairo_fill(context_);
    ink(colour);
    text(x, baseline, label, Align::kCentre);
  }

  void draw_head() {
    select_font(context_, 1.35 * em_, true);
    ink(kText);
    text(plot_.left, 2.1 * em_, data_.title.empty() ? "training" : data_.title);
    select_font(context_, em_);
    double x = plot_.left;
    const double y = 4.1 * em_;
    const auto entry = [&](const Ink& colour, double thickness, const std::string& name,
                           bool dashed = false) {
      const std::array<double, 2> dashes{0.5 * em_, 0.3 * em_};
      if (dashed) cairo_set_dash(context_, dashes.data(), 2, 0);
      ink(colour);
      cairo_set_line_width(context_, thickness * em_);
      cairo_move_to(context_, x, y - 0.35 * em_);
      cairo_line_to(context_, x + 1.8 * em_, y - 0.35 * em_);
      cairo_stroke(context_);
      cairo_set_dash(context_, nullptr, 0, 0);
      ink(kText);
      x = text(x + 2.3 * em_, y, name).right + 1.8 * em_;
    };
    if (!losses_.empty()) {
      entry(kRawLoss, 0.12, "loss");
      entry(kLoss, 0.2, "average loss");
    }
    for (std::size_t i = 0; i < percents_.size(); ++i) {
      const std::vector<SeriesPoint>& points = percents_[i].points;
      std::string name = percents_[i].name;
      if (!points.empty() && std::isfinite(points.back().value)) {
        name += fmt::format(" ({:.1f} %)", 100 * points.back().value);
      }
      entry(percent_ink(i), 0.2, name);
    }
    if (!rates_.empty())
      entry(kRate, 0.12, fmt::format("learning rate ({:.4g})", rates_.back().value), true);
  }

  void draw_foot() {
    std::string foot = "no iteration yet";
    if (!losses_.empty()) {
      foot = fmt::format("current avg loss = {:.4f}    iteration = {}", losses_.back().average,
                         losses_.back().iteration);
      if (data_.max_iterations > 0) foot += fmt::format(" of {}", data_.max_iterations);
    }
    if (data_.hours_left)
      foot += fmt::format("    approx. time left = {:.2f} hours", *data_.hours_left);
    select_font(context_, em_);
    ink(kText);
    text(width_ / 2, height_ - 1.1 * em_, foot, Align::kCentre);
  }

  static constexpr Scale kPercentScale{0, 100};

  const ChartData& data_;
  double width_, height_;  // px
  std::vector<LossPoint> losses_;
  std::vector<SeriesPoint> rates_;
  std::vector<PercentSeries> percents_;
  std::int64_t iterations_ = 1;
  Scale loss_;
  Box plot_;
  std::vector<Box> labels_;
};

}  // namespace

std::string render_chart(const ChartData& data, ChartFormat format, ChartSize size) {
  return render_canvas(format, size, [&](cairo_t* context, ChartSize within) {
    Painter(data, context, within).draw();
  });
}

}  // namespace lantern::draw
