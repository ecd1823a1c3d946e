#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lantern::draw {

struct LossPoint {
  std::int64_t iteration = 0;
  double loss = 0;     ///< of this iteration; not finite: marked in the chart
  double average = 0;  ///< smoothed
};

struct SeriesPoint {
  std::int64_t iteration = 0;
  double value = 0;
};

/// A measure between 0 and 1, drawn in percent against the right axis.
struct PercentSeries {
  std::string name;  ///< "mAP@0.50", "top5", "contrastive accuracy"
  std::vector<SeriesPoint> points;
};

/// Everything the training chart shows; all of it stands in the metrics log, so a chart can be
/// re-made at any time. Points need not be sorted. Empty vectors are left out of the picture.
struct ChartData {
  std::string title;
  std::vector<LossPoint> losses;
  std::vector<PercentSeries> percents;  ///< the best value of the first one is marked
  std::vector<SeriesPoint> rates;       ///< learning rate, drawn to a scale of its own
  std::int64_t max_iterations = 0;      ///< right end of the x axis; 0: the last iteration present
  double max_loss = 20;  ///< cfg key max_chart_loss: an average above it turns the axis logarithmic
  std::optional<double> hours_left;
};

enum class ChartFormat { kPng, kSvg };

struct ChartSize {
  int width = 1200;
  int height = 800;
};

/// The bytes of the picture file.
std::string render_chart(const ChartData& data, ChartFormat format, ChartSize size = {});

}  // namespace lantern::draw
