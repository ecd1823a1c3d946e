#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/model.hpp"
#include "train/train_settings.hpp"

namespace lantern::train {

/// One evaluation of the network in training; values are 0 to 1.
struct Measured {
  /// Series of the chart with their values; the first one decides which weights are the best.
  std::vector<std::pair<std::string, double>> percents;
  /// Keys of the metrics log.
  std::vector<std::pair<std::string, double>> numbers;
};

/// What measures the network while it trains: -map of a detector, -topk of a classifier.
class TrainingEvaluation {
 public:
  virtual ~TrainingEvaluation() = default;
  /// The flag that asks for it: "-map".
  virtual std::string_view flag() const = 0;
  /// What it gives: "mAP".
  virtual std::string_view name() const = 0;
  /// First iteration at which the next evaluation is due; `last` is that of the one before, or
  /// where the run began. The last iteration always has one.
  virtual std::int64_t next_after(std::int64_t last) const = 0;
  virtual Measured measure(exec::Model& model, Console& console) = 0;
  /// What standard output says; `next` is the iteration of the next one.
  virtual std::string line(const Measured& measured, double best, std::int64_t next) const = 0;
};

}  // namespace lantern::train
