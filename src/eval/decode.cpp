#include "eval/decode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace lantern::eval {
namespace {

/// Largest relative side; e^w of an untrained network may overflow, products of two sides must not.
constexpr float kLargestSide = 1e9F;

float logistic(float x) { return 1 / (1 + std::exp(-x)); }

bool is_finite(const Box& box) {
  return std::isfinite(box.x) && std::isfinite(box.y) && std::isfinite(box.w) &&
         std::isfinite(box.h);
}

/// Where the values of one anchor in one cell lie: value e at base + e * step.
struct Values {
  std::span<const float> output;
  std::int64_t base = 0, step = 0;
  float operator[](std::int64_t entry) const {
    return output[static_cast<std::size_t>(base + entry * step)];
  }
};

[[noreturn]] void throw_invalid(const std::string& what) {
  throw Error(ErrorCode::kInvalidConfig, "", "detection head: {}", what);
}

std::vector<int> owned_anchors(const YoloHead& head) {
  const auto total = static_cast<int>(head.anchors.size());
  std::vector<int> mask = head.mask;
  if (mask.empty()) {
    mask.resize(head.anchors.size());
    std::iota(mask.begin(), mask.end(), 0);
  }
  for (const int index : mask) {
    if (index < 0 || index >= total) {
      throw_invalid(fmt::format("mask holds {}, there are {} anchors", index, total));
    }
  }
  return mask;
}

class Decoder {
 public:
  Decoder(const YoloHead& head, std::span<const float> output, const DecodeOptions& options,
          DetectionList& list)
      : head_(head), output_(output), options_(options), list_(list) {
    if (head.classes != list.classes()) {
      throw_invalid(
          fmt::format("it has {} classes, the list of detections {}; heads of one "
                      "network must agree",
                      head.classes, list.classes()));
    }
    if (head.kind != YoloHead::Kind::kDetection) anchors_ = owned_anchors(head);
    if (static_cast<std::int64_t>(output.size()) != head.output_size()) {
      throw_invalid(
          fmt::format("output has {} values, want {}", output.size(), head.output_size()));
    }
    for (std::size_t c = 0; c < head.tree_parents.size(); ++c) {
      if (head.tree_parents[c] >= static_cast<int>(c)) {
        throw_invalid(
            fmt::format("tree node {} stands before its parent {}", c, head.tree_parents[c]));
      }
    }
    if (!head.tree_parents.empty() &&
        head.tree_parents.size() != static_cast<std::size_t>(head.classes)) {
      throw_invalid(fmt::format("the tree has {} nodes, the head {} classes",
                                head.tree_parents.size(), head.classes));
    }
    if (options.net_w <= 0 || options.net_h <= 0) {
      throw_invalid(fmt::format("network input is {} x {}", options.net_w, options.net_h));
    }
  }

  void run() {
    for (int row = 0; row < head_.grid_h; ++row) {
      for (int column = 0; column < head_.grid_w; ++column) {
        for (int k = 0; k < head_.boxes(); ++k) decode_one(row, column, k);
      }
    }
  }

 private:
  void decode_one(int row, int column, int k) {
    switch (head_.kind) {
      case YoloHead::Kind::kYolo:
        return decode_yolo(row, column, k);
      case YoloHead::Kind::kGaussianYolo:
        return decode_gaussian(row, column, k);
      case YoloHead::Kind::kRegion:
        return decode_region(row, column, k);
      case YoloHead::Kind::kDetection:
        return decode_detection(row, column, k);
    }
  }

  /// [anchor][entry][row][column]
  Values planes(int row, int column, int k, std::int64_t entries) const {
    const std::int64_t cells = static_cast<std::int64_t>(head_.grid_w) * head_.grid_h;
    return {output_, k * entries * cells + cell(row, column), cells};
  }

  std::int64_t cell(int row, int column) const {
    return static_cast<std::int64_t>(row) * head_.grid_w + column;
  }

  std::pair<float, float> anchor(int k) const {
    const auto index = static_cast<std::size_t>(anchors_[static_cast<std::size_t>(k)]);
    return head_.anchors[index];
  }

  float column_of(int column, float x) const {
    return (static_cast<float>(column) + x) / static_cast<float>(head_.grid_w);
  }
  float row_of(int row, float y) const {
    return (static_cast<float>(row) + y) / static_cast<float>(head_.grid_h);
  }

  /// e^t * anchor / units, kept finite.
  static float exponential_side(float t, float anchor_side, int units) {
    const float side = std::exp(t) * anchor_side / static_cast<float>(units);
    return side > kLargestSide ? kLargestSide : side;
  }

  void decode_yolo(int row, int column, int k) {
    const Values v = planes(row, column, k, head_.classes + 5);
    if (!(v[4] > options_.threshold)) return;
    const auto [anchor_w, anchor_h] = anchor(k);
    Box box{column_of(column, v[0]), row_of(row, v[1])};
    if (head_.new_coords) {
      box.w = 4 * v[2] * v[2] * anchor_w / static_cast<float>(options_.net_w);
      box.h = 4 * v[3] * v[3] * anchor_h / static_cast<float>(options_.net_h);
    } else {
      box.w = exponential_side(v[2], anchor_w, options_.net_w);
      box.h = exponential_side(v[3], anchor_h, options_.net_h);
    }
    add(box, v[4], 1, row, column, k, v, 5);
  }

  void decode_gaussian(int row, int column, int k) {
    const Values v = planes(row, column, k, head_.classes + 9);
    if (!(v[8] > options_.threshold)) return;
    const auto [anchor_w, anchor_h] = anchor(k);
    Box box{column_of(column, v[0]), row_of(row, v[2]),
            exponential_side(v[4], anchor_w, options_.net_w),
            exponential_side(v[6], anchor_h, options_.net_h)};
    if (head_.point != YoloHead::Point::kCenter) {
      const float sign = head_.point == YoloHead::Point::kLeftTop ? 1.0F : -1.0F;
      box.x += sign * box.w / 2;
      box.y += sign * box.h / 2;
    }
    const float certainty = 1 - (v[1] + v[3] + v[5] + v[7]) / 4;
    add(box, v[8], certainty, row, column, k, v, 9);
  }

  void decode_region(int row, int column, int k) {
    const std::int64_t entries = head_.classes + 1 + head_.coords;
    const Values v{output_, (cell(row, column) * head_.boxes() + k) * entries, 1};
    if (!(v[4] > options_.threshold)) return;
    const auto [anchor_w, anchor_h] = anchor(k);
    const Box box{column_of(column, logistic(v[0])), row_of(row, logistic(v[1])),
                  exponential_side(v[2], anchor_w, head_.grid_w),
                  exponential_side(v[3], anchor_h, head_.grid_h)};
    const std::size_t before = list_.size();
    add(box, v[4], 1, row, column, k, v, 5);
    if (list_.size() == before) return;
    // Darknet: a [region] detection reports objectness 1 (golden case region_reorg).
    list_[before].objectness = 1;
    if (!head_.tree_parents.empty()) set_tree_class(v, list_.probabilities(before));
  }

  /// Darknet: 0.5 is fixed (`-hier` has no effect) and the objectness is no factor.
  void set_tree_class(const Values& values, std::span<float> probabilities) const {
    std::vector<float> absolute(probabilities.size());
    std::size_t best = probabilities.size();
    for (std::size_t c = 0; c < probabilities.size(); ++c) {
      const int parent = head_.tree_parents[c];
      absolute[c] = values[5 + static_cast<std::int64_t>(c)];
      if (parent >= 0) absolute[c] *= absolute[static_cast<std::size_t>(parent)];
      if (absolute[c] > 0.5F) best = c;
    }
    std::ranges::fill(probabilities, 0.0F);
    if (best < probabilities.size() && std::isfinite(absolute[best])) {
      probabilities[best] = absolute[best];
    }
  }

  void decode_detection(int row, int column, int k) {
    const std::int64_t cells = static_cast<std::int64_t>(head_.grid_w) * head_.grid_h;
    const std::int64_t confidences = cells * head_.classes;
    const std::int64_t boxes = confidences + cells * head_.boxes();
    const std::int64_t place = cell(row, column) * head_.boxes() + k;
    const Values v{output_, boxes + place * 4, 1};
    const float confidence = output_[static_cast<std::size_t>(confidences + place)];
    if (std::isnan(confidence)) return;
    Box box{column_of(column, v[0]), row_of(row, v[1]), v[2], v[3]};
    if (head_.sqrt_size) {
      box.w *= box.w;
      box.h *= box.h;
    }
    const Values classes{output_, cell(row, column) * head_.classes, 1};
    add(box, confidence, 1, row, column, k, classes, 0);
  }

  void add(Box box, float objectness, float certainty, int row, int column, int k,
           const Values& values, int first_class) {
    // [detection] is never undone: its nets do not letterbox.
    if (options_.letterboxed_image && head_.kind != YoloHead::Kind::kDetection) {
      const auto [image_w, image_h] = *options_.letterboxed_image;
      box = undo_letterbox(box, options_.net_w, options_.net_h, image_w, image_h);
    }
    if (!is_finite(box)) return;
    const std::size_t index = list_.add({.box = box,
                                         .objectness = objectness,
                                         .head = options_.head,
                                         .anchor = k,
                                         .cell = static_cast<int>(cell(row, column))});
    const std::span<float> probabilities = list_.probabilities(index);
    for (int c = 0; c < head_.classes; ++c) {
      const float probability = objectness * values[first_class + c] * certainty;
      if (probability > options_.threshold && std::isfinite(probability)) {
        probabilities[static_cast<std::size_t>(c)] = probability;
      }
    }
  }

  const YoloHead& head_;
  std::span<const float> output_;
  const DecodeOptions& options_;
  DetectionList& list_;
  std::vector<int> anchors_;
};

}  // namespace

int YoloHead::boxes() const {
  if (kind == Kind::kDetection) return boxes_per_cell;
  return static_cast<int>(mask.empty() ? anchors.size() : mask.size());
}

std::int64_t YoloHead::output_size() const {
  const std::int64_t cells = static_cast<std::int64_t>(grid_w) * grid_h;
  switch (kind) {
    case Kind::kYolo:
      return cells * boxes() * (classes + 5);
    case Kind::kRegion:
      return cells * boxes() * (classes + 1 + coords);
    case Kind::kGaussianYolo:
      return cells * boxes() * (classes + 9);
    case Kind::kDetection:
      return cells * (classes + boxes() * 5LL);
  }
  return 0;
}

void decode(const YoloHead& head, std::span<const float> output, const DecodeOptions& options,
            DetectionList& detections) {
  if (head.classes < 0 || head.grid_w < 0 || head.grid_h < 0 || head.boxes() < 0) {
    throw_invalid("sizes must not be negative");
  }
  Decoder(head, output, options, detections).run();
}

}  // namespace lantern::eval
