#include "draw/chart_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lantern::draw {
namespace {

// Smallest of 1, 2, 5 times a power of ten that is >= value; value > 0.
double round_up_125(double value) {
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= value * (1 - 1e-9)) return factor * decade;
  }
  return 10 * decade;
}

}  // namespace

double Scale::position(double value) const {
  if (logarithmic) {
    if (value <= low) return 0;
    return std::min(1.0, std::log(value / low) / std::log(high / low));
  }
  return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

Scale loss_scale(std::span<const LossPoint> losses, double max_loss) {
  // Beyond these ends a double still divides and takes logarithms without surprises.
  constexpr double kLargest = 1e30;
  constexpr double kSmallest = 1e-12;
  double lowest = 0;
  double largest = 0;
  double least_positive = kLargest;
  for (const LossPoint& point : losses) {
    if (!std::isfinite(point.average)) continue;
    const double value = std::clamp(point.average, -kLargest, kLargest);
    lowest = std::min(lowest, value);
    largest = std::max(largest, value);
    if (value > 0) least_positive = std::min(least_positive, value);
  }
  if (largest > max_loss) {
    const double low = std::pow(10.0, std::floor(std::log10(std::max(least_positive, kSmallest))));
    return {.low = std::min(low, largest / 10),
            .high = round_up_125(largest * 1.05),
            .logarithmic = true};
  }
  // Steps of a tenth of the rounded range keep the curve in the upper part of the picture.
  const double span = std::max(largest - lowest, kSmallest) * 1.05;
  const double step = round_up_125(span) / 10;
  return {.low = lowest < 0 ? std::floor(lowest / step) * step : 0,
          .high = std::max(std::ceil(largest * 1.05 / step), 1.0) * step};
}

std::vector<Tick> make_ticks(const Scale& scale, int wanted) {
  std::vector<Tick> ticks;
  const int count = std::max(wanted, 1);
  if (!scale.logarithmic) {
    const double step = round_up_125((scale.high - scale.low) / count);
    // Counted, not added up: 0.1 + 0.1 + 0.1 is not 0.3.
    const auto first = std::llround(std::ceil(scale.low / step - 1e-6));
    const auto last = std::llround(std::floor(scale.high / step + 1e-6));
    for (long long i = first; i <= last; ++i) {
      const double value = static_cast<double>(i) * step;
      ticks.push_back({value, short_number(value)});
    }
    return ticks;
  }
  const int first = static_cast<int>(std::floor(std::log10(scale.low) + 1e-6));
  const int last = static_cast<int>(std::ceil(std::log10(scale.high) - 1e-6));
  const int decades = last - first;
  const bool label_between = 3 * decades <= 2 * count;
  const int every = std::max(1, decades / count);
  for (int exponent = first; exponent <= last; ++exponent) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10.0, exponent);
      if (value < scale.low * (1 - 1e-6) || value > scale.high * (1 + 1e-6)) continue;
      const bool labelled = digit == 1 ? (exponent - first) % every == 0
                                       : label_between && (digit == 2 || digit == 5);
      if (!labelled && every > 1) continue;
      ticks.push_back({value, labelled ? short_number(value) : ""});
    }
  }
  return ticks;
}

std::string short_number(double value) { return fmt::format("{:.6g}", value == 0 ? 0.0 : value); }

std::vector<SeriesPoint> thin_out(std::span<const SeriesPoint> points, std::int64_t last_iteration,
                                  int buckets) {
  std::vector<SeriesPoint> out;
  const double width = std::max(1.0, static_cast<double>(last_iteration) / std::max(buckets, 1));
  const auto bucket_of = [width](const SeriesPoint& point) {
    return std::floor(static_cast<double>(point.iteration) / width);
  };
  for (std::size_t i = 0; i < points.size();) {
    const double bucket = bucket_of(points[i]);
    std::vector<std::size_t> kept;  // first, smallest, largest, last
    for (; i < points.size() && bucket_of(points[i]) == bucket; ++i) {
      if (!std::isfinite(points[i].value)) continue;
      if (kept.empty()) kept.assign(4, i);
      if (points[i].value < points[kept[1]].value) kept[1] = i;
      if (points[i].value > points[kept[2]].value) kept[2] = i;
      kept[3] = i;
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const std::size_t index : kept) out.push_back(points[index]);
  }
  return out;
}

}  // namespace lantern::draw
