#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/box.hpp"
#include "eval/detection.hpp"

namespace lantern::eval {

struct Truth {
  Box box;
  int class_id = 0;
};

/// The same object written in two lists; label files hold six decimals.
bool is_same_object(const Truth& a, const Truth& b);

struct MapOptions {
  double iou_threshold = 0.5;          ///< strict: IoU > iou_threshold
  double confidence_threshold = 0.25;  ///< strict, for TP, FP, precision, recall, F1, average IoU
  int points = 0;                      ///< 0: area under the envelope; P > 0: mean over P recalls
};

struct CurvePoint {
  float score = 0;
  double precision = 0, recall = 0;
};

struct ClassResult {
  double ap = 0;  ///< 0 .. 1; 0 for a class without truth
  std::int64_t truths = 0, entries = 0;
  std::int64_t tp = 0, fp = 0;      ///< above the confidence threshold
  std::vector<CurvePoint> curve{};  ///< one point a true positive, score descending
};

/// Every ratio 0/0 is 0.
struct MapResult {
  MapOptions options;
  std::vector<ClassResult> classes;
  double map = 0;              ///< over all classes, those without truth counting 0
  double map_with_truths = 0;  ///< over the classes that have truth
  int classes_without_truth = 0;
  std::int64_t detections_count = 0, truths = 0;  ///< (detection, class) pairs; truth boxes
  std::int64_t ignored_truths = 0;                ///< class number out of range
  std::int64_t tp = 0, fp = 0, fn = 0;
  double precision = 0, recall = 0, f1 = 0, average_iou = 0;  ///< 0 .. 1
};

/// Collects detections and truths image by image, then gives the mean average precision for any IoU
/// threshold from the same entries (24 bytes each).
class AveragePrecision {
 public:
  explicit AveragePrecision(int classes);

  /// After NMS. `difficult` objects count neither as truth (an equal box in `truths` is taken out)
  /// nor, when an otherwise unmatched detection lies on one, as false positive.
  void add_image(const DetectionList& detections, std::span<const Truth> truths,
                 std::span<const Truth> difficult = {});

  std::int64_t images() const { return images_; }
  /// Throws kUsage for points < 0.
  MapResult result(const MapOptions& options = {}) const;

 private:
  struct Entry {
    float score = 0;
    float iou = 0;  ///< with the best truth of its class in its image
    float difficult_iou = 0;
    std::int64_t truth = -1;  ///< number of that truth inside the class, -1 without any overlap
  };
  ClassResult class_result(int class_id, const MapOptions& options, double& iou_sum) const;

  int classes_;
  std::int64_t images_ = 0;
  std::int64_t ignored_truths_ = 0;
  mutable std::vector<std::vector<Entry>> entries_;  ///< per class; sorted on demand
  mutable bool sorted_ = true;
  std::vector<std::int64_t> truths_;  ///< per class
};

/// Truths found at IoU > `iou_threshold` by any detection, class-blind (`detector recall`).
struct RecallCounter {
  static constexpr float kObjectness = 0.001F;  ///< detections above it count
  float iou_threshold = 0.5F;
  std::int64_t images = 0, truths = 0, found = 0, detections = 0;
  double iou_sum = 0;

  void add_image(const DetectionList& list, std::span<const Truth> image_truths);
  // 0 for 0/0.
  double recall() const;
  double average_iou() const;  ///< of each truth with its best detection
  double detections_per_image() const;
  /// "    0     3     4\tRPs/Img: 12.00\tIOU: 71.03%\tRecall:75.00%", index of the last image
  std::string line() const;
};

}  // namespace lantern::eval
