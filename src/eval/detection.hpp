#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "eval/box.hpp"

namespace lantern::eval {

/// Where a detection came from breaks ties, so that the order of a list is defined.
struct Detection {
  Box box{};             ///< relative to the image after decoding
  float objectness = 0;  ///< 0 .. 1
  int head = 0;          ///< index among the heads of the network, cfg order
  int anchor = 0;        ///< index inside the head
  int cell = 0;          ///< row * grid width + column
};

/// Detections of one image with their class probabilities in one flat array [detections][classes].
class DetectionList {
 public:
  explicit DetectionList(int classes = 0);

  int classes() const { return classes_; }
  std::size_t size() const { return detections_.size(); }
  bool empty() const { return detections_.empty(); }
  const Detection& operator[](std::size_t i) const { return detections_[i]; }
  Detection& operator[](std::size_t i) { return detections_[i]; }
  std::span<const float> probabilities(std::size_t i) const;
  std::span<float> probabilities(std::size_t i);
  /// Class of the highest probability (the first one of equals) or -1 when all are 0.
  int best_class(std::size_t i) const;
  float best_probability(std::size_t i) const;

  /// Appends one with all probabilities 0 and returns its index.
  std::size_t add(const Detection& detection);
  void clear();
  void reserve(std::size_t count);
  /// New list: element k is the old order[k]; indices left out are dropped.
  void reorder(std::span<const std::size_t> order);

 private:
  int classes_;
  std::vector<Detection> detections_;
  std::vector<float> probabilities_;
};

/// Undoes the letterbox: `box` in units of the network input becomes relative to the image. The
/// half difference is not truncated although the paste position is (the reference's rule, kept).
Box undo_letterbox(Box box, int net_w, int net_h, int image_w, int image_h);

}  // namespace lantern::eval
