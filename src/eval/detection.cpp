#include "eval/detection.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lantern::eval {

DetectionList::DetectionList(int classes) : classes_(classes) {
  LANTERN_ASSERT(classes >= 0, "a list has no negative number of classes");
}

std::span<const float> DetectionList::probabilities(std::size_t i) const {
  const auto classes = static_cast<std::size_t>(classes_);
  return std::span(probabilities_).subspan(i * classes, classes);
}

std::span<float> DetectionList::probabilities(std::size_t i) {
  const auto classes = static_cast<std::size_t>(classes_);
  return std::span(probabilities_).subspan(i * classes, classes);
}

int DetectionList::best_class(std::size_t i) const {
  int best = -1;
  float best_probability = 0;
  const std::span<const float> row = probabilities(i);
  for (int c = 0; c < classes_; ++c) {
    const float probability = row[static_cast<std::size_t>(c)];
    if (probability > best_probability) {
      best = c;
      best_probability = probability;
    }
  }
  return best;
}

float DetectionList::best_probability(std::size_t i) const {
  const int best = best_class(i);
  return best < 0 ? 0 : probabilities(i)[static_cast<std::size_t>(best)];
}

std::size_t DetectionList::add(const Detection& detection) {
  detections_.push_back(detection);
  probabilities_.resize(probabilities_.size() + static_cast<std::size_t>(classes_), 0.0F);
  return detections_.size() - 1;
}

void DetectionList::clear() {
  detections_.clear();
  probabilities_.clear();
}

void DetectionList::reserve(std::size_t count) {
  detections_.reserve(count);
  probabilities_.reserve(count * static_cast<std::size_t>(classes_));
}

void DetectionList::reorder(std::span<const std::size_t> order) {
  std::vector<Detection> detections;
  std::vector<float> probabilities_in_order;
  detections.reserve(order.size());
  probabilities_in_order.reserve(order.size() * static_cast<std::size_t>(classes_));
  for (const std::size_t i : order) {
    detections.push_back(detections_[i]);
    const std::span<const float> row = probabilities(i);
    probabilities_in_order.insert(probabilities_in_order.end(), row.begin(), row.end());
  }
  detections_ = std::move(detections);
  probabilities_ = std::move(probabilities_in_order);
}

Box undo_letterbox(Box box, int net_w, int net_h, int image_w, int image_h) {
  LANTERN_ASSERT(net_w > 0 && net_h > 0 && image_w > 0 && image_h > 0, "sizes are positive");
  std::int64_t new_w = net_w;
  std::int64_t new_h = net_h;
  if (static_cast<float>(net_w) / static_cast<float>(image_w) <
      static_cast<float>(net_h) / static_cast<float>(image_h)) {
    new_h = std::max<std::int64_t>(1, static_cast<std::int64_t>(image_h) * net_w / image_w);
  } else {
    new_w = std::max<std::int64_t>(1, static_cast<std::int64_t>(image_w) * net_h / image_h);
  }
  const auto width = static_cast<float>(net_w);
  const auto height = static_cast<float>(net_h);
  const auto inner_w = static_cast<float>(new_w);
  const auto inner_h = static_cast<float>(new_h);
  box.x = (box.x - (width - inner_w) / 2 / width) / (inner_w / width);
  box.y = (box.y - (height - inner_h) / 2 / height) / (inner_h / height);
  box.w *= width / inner_w;
  box.h *= height / inner_h;
  return box;
}

}  // namespace lantern::eval
