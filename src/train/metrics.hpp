#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "draw/chart.hpp"
#include "exec/model.hpp"
#include "train/training_evaluation.hpp"

namespace lantern::train {

/// Numbers of one finished iteration.
struct IterationRecord {
  std::int64_t iteration = 0;
  double loss = 0, average_loss = 0, rate = 0;
  double seconds = 0;          ///< computing
  double seconds_waiting = 0;  ///< for the loader
  std::int64_t images = 0;     ///< since iteration 0
  std::uint64_t seed = 0;      ///< of the run; with it and the files the run can be repeated
  int width = 0, height = 0;
  std::vector<exec::LossReport> losses;  ///< of the last mini-batch
};

/// The metrics log (JSON lines, one an iteration, one an evaluation) and the chart that is drawn
/// from it.
class Metrics {
 public:
  Metrics(std::filesystem::path log, std::filesystem::path chart, std::string title,
          std::int64_t max_iterations, double max_chart_loss);

  /// The run goes on behind `iteration`: what the log says of later ones is cut off, the rest is in
  /// the chart again.
  void go_on_from(std::int64_t iteration);
  /// Takes the points behind `iteration` out of the chart.
  void forget_after(std::int64_t iteration);
  /// A log that cannot be written any more (full disk) ends with its last whole line and a warning.
  void add(const IterationRecord& record);
  void add_evaluation(std::int64_t iteration, const Measured& measured);
  /// Draws the chart as PNG, and beside it as SVG; atomic. A chart that cannot be written is a
  /// warning, once: it costs no training.
  void draw_chart(std::optional<double> hours_left);
  const std::filesystem::path& chart() const { return chart_path_; }
  const draw::ChartData& chart_data() const { return chart_; }

 private:
  void add_percent(std::int64_t iteration, const std::string& name, double value);
  void write_line(const std::string& line);
  std::filesystem::path log_path_, chart_path_;
  std::ofstream log_;
  std::uintmax_t log_bytes_ = 0;  ///< of whole lines
  bool chart_refused_ = false;
  draw::ChartData chart_;
};

}  // namespace lantern::train
