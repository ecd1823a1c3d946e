#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "eval/average_precision.hpp"
#include "eval/detection.hpp"
#include "eval/results.hpp"

namespace lantern::eval {

/// One of the twelve numbers of COCO's detection evaluation (cocodataset.org/#detection-eval).
struct CocoNumber {
  std::string_view key;  ///< in our JSON
  bool is_recall = false;
  std::string_view iou, area;
  int most_detections = 100;  ///< per image and class
};
inline constexpr std::array<CocoNumber, 12> kCocoNumbers{{
    {"ap", false, "0.50:0.95", "all", 100},
    {"ap50", false, "0.50", "all", 100},
    {"ap75", false, "0.75", "all", 100},
    {"ap_small", false, "0.50:0.95", "small", 100},
    {"ap_medium", false, "0.50:0.95", "medium", 100},
    {"ap_large", false, "0.50:0.95", "large", 100},
    {"ar1", true, "0.50:0.95", "all", 1},
    {"ar10", true, "0.50:0.95", "all", 10},
    {"ar100", true, "0.50:0.95", "all", 100},
    {"ar_small", true, "0.50:0.95", "small", 100},
    {"ar_medium", true, "0.50:0.95", "medium", 100},
    {"ar_large", true, "0.50:0.95", "large", 100},
}};

/// Means over the classes that have truths (of that size); empty where none has.
struct CocoResult {
  std::array<std::optional<double>, kCocoNumbers.size()> numbers{};  ///< as kCocoNumbers
  std::vector<std::optional<double>> class_ap{};  ///< by class: AP at IoU 0.50:0.95, all sizes
  double ap() const { return numbers[0].value_or(0); }
};

/// COCO's numbers from detections and truths, image by image; about 24 bytes for each of the at
/// most 100 detections of a class in an image. Sizes are those of the boxes in pixels of the
/// picture: small up to 32x32, medium up to 96x96. Unlike in AveragePrecision a hit is IoU >=
/// threshold, and a detection whose best truth is taken may take its next best.
class CocoMetrics {
 public:
  explicit CocoMetrics(int classes);

  /// After NMS; boxes relative to the picture, used as they are (not clipped). `difficult` objects
  /// (an equal box in `truths` is taken out) are ignored: not counted, and nor is a detection
  /// that finds one.
  void add_image(const DetectionList& detections, ImageSize size, std::span<const Truth> truths,
                 std::span<const Truth> difficult = {});
  CocoResult result() const;

  static constexpr int kThresholds = 10;  ///< IoU 0.50, 0.55, .. 0.95
  static constexpr int kAreas = 4;        ///< all, small, medium, large
  static constexpr int kMostDetections = 100;

 private:
  struct Entry {
    float score = 0;
    std::uint8_t rank = 0;  ///< among the detections of its class in its image
    /// A bit for each threshold.
    std::array<std::uint16_t, kAreas> hit{}, ignored{};
  };
  struct ClassEntries {
    std::vector<Entry> entries;
    std::array<std::int64_t, kAreas> truths{};  ///< that count
  };
  struct Measured {
    double ap = 0, recall = 0;
  };
  struct PixelBox;
  void add_class(ClassEntries& target, std::span<const PixelBox> detections,
                 std::span<const float> scores, std::span<const PixelBox> truths);
  static Measured measure(const ClassEntries& one, std::span<const std::uint32_t> order,
                          std::size_t area, int most_detections, int threshold);

  std::vector<ClassEntries> classes_;
};

}  // namespace lantern::eval
