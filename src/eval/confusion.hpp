#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/average_precision.hpp"
#include "eval/detection.hpp"

namespace lantern::eval {

/// How often a truth of one class was detected as which. A detection counts with its best class
/// when that is above the confidence threshold; truths and detections pair up one to one whatever
/// their classes, the pair with the largest IoU above the threshold first. What is left over is
/// paired with the background.
class ConfusionMatrix {
 public:
  static constexpr int kMostClasses = 1000;

  struct Options {
    double iou_threshold = 0.5;          ///< strict
    double confidence_threshold = 0.25;  ///< strict
  };
  /// Throws kUsage for more than kMostClasses.
  ConfusionMatrix(int classes, const Options& options);

  /// After NMS. `difficult` objects are no truths, and a detection left over on one of its class is
  /// not counted.
  void add_image(const DetectionList& detections, std::span<const Truth> truths,
                 std::span<const Truth> difficult = {});

  int classes() const { return classes_; }
  const Options& options() const { return options_; }
  /// classes() stands for the background.
  std::int64_t at(int truth, int detected) const;

 private:
  std::int64_t& cell(int truth, int detected);

  int classes_;
  Options options_;
  std::vector<std::int64_t> counts_;  ///< [classes + 1][classes + 1], a row for each truth
};

/// A table for people, every line ended.
std::string confusion_text(const ConfusionMatrix& matrix, std::span<const std::string> names);
/// Comma-separated with a header line.
std::string confusion_csv(const ConfusionMatrix& matrix, std::span<const std::string> names);

}  // namespace lantern::eval
