#include "eval/coco.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace lantern::eval {

namespace {

// The published evaluation makes its thresholds as first + i * step in double precision; so that
// values on an edge fall on the same side, so do we.
double iou_threshold(int i) {
  constexpr double kFirst = 0.5, kLast = 0.95;
  const int last = CocoMetrics::kThresholds - 1;
  return i == last ? kLast : kFirst + i * ((kLast - kFirst) / last);
}
constexpr int kRecalls = 101;
double recall_threshold(int i) { return i == kRecalls - 1 ? 1 : i * 0.01; }

struct AreaRange {
  std::string_view name;
  double low, high;  // square pixels, both ends included
};
constexpr std::array<AreaRange, CocoMetrics::kAreas> kAreaRanges{{{"all", 0, 1e10},
                                                                  {"small", 0, 32 * 32},
                                                                  {"medium", 32 * 32, 96 * 96},
                                                                  {"large", 96 * 96, 1e10}}};

std::size_t area_index(std::string_view name) {
  const auto place = std::ranges::find(kAreaRanges, name, &AreaRange::name);
  LANTERN_ASSERT(place != kAreaRanges.end(), "an area of the table");
  return static_cast<std::size_t>(place - kAreaRanges.begin());
}

// Mean of the numbers that are there.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
  }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace

struct CocoMetrics::PixelBox {
  double left = 0, top = 0, w = 0, h = 0;
  bool is_ignored = false;

  PixelBox(const Box& box, ImageSize size, bool ignored = false)
      : left((static_cast<double>(box.x) - static_cast<double>(box.w) / 2) * size.width),
        top((static_cast<double>(box.y) - static_cast<double>(box.h) / 2) * size.height),
        w(static_cast<double>(box.w) * size.width),
        h(static_cast<double>(box.h) * size.height),
        is_ignored(ignored) {}
  double area() const { return w * h; }
  bool is_outside(const AreaRange& range) const {
    return area() < range.low || area() > range.high;
  }
  double iou(const PixelBox& other) const {
    const double across = std::min(left + w, other.left + other.w) - std::max(left, other.left);
    const double down = std::min(top + h, other.top + other.h) - std::max(top, other.top);
    if (across <= 0 || down <= 0) return 0;
    const double common = across * down;
    return common / (area() + other.area() - common);
  }
};

CocoMetrics::CocoMetrics(int classes) : classes_(static_cast<std::size_t>(std::max(classes, 0))) {
  LANTERN_ASSERT(classes >= 0, "no negative number of classes");
}

void CocoMetrics::add_image(const DetectionList& detections, ImageSize size,
                            std::span<const Truth> truths, std::span<const Truth> difficult) {
  std::vector<std::vector<PixelBox>> truths_of(classes_.size());
  const auto add_truth = [&](const Truth& truth, bool ignored) {
    if (truth.class_id < 0 || static_cast<std::size_t>(truth.class_id) >= classes_.size()) return;
    truths_of[static_cast<std::size_t>(truth.class_id)].emplace_back(truth.box, size, ignored);
  };
  for (const Truth& truth : truths) {
    if (std::ranges::none_of(difficult,
                             [&](const Truth& each) { return is_same_object(each, truth); })) {
      add_truth(truth, false);
    }
  }
  for (const Truth& truth : difficult) add_truth(truth, true);

  std::vector<std::size_t> order;
  std::vector<PixelBox> boxes;
  std::vector<float> scores;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    order.clear();
    boxes.clear();
    scores.clear();
    const bool has_column = static_cast<int>(c) < detections.classes();
    for (std::size_t i = 0; has_column && i < detections.size(); ++i) {
      if (detections.probabilities(i)[c] > 0) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return detections.probabilities(i)[c]; });
    if (order.size() > kMostDetections) order.resize(kMostDetections);
    for (const std::size_t i : order) {
      boxes.emplace_back(detections[i].box, size);
      scores.push_back(detections.probabilities(i)[c]);
    }
    if (!boxes.empty() || !truths_of[c].empty()) {
      add_class(classes_[c], boxes, scores, truths_of[c]);
    }
  }
}

void CocoMetrics::add_class(ClassEntries& target, std::span<const PixelBox> detections,
                            std::span<const float> scores, std::span<const PixelBox> truths) {
  constexpr auto kNone = std::numeric_limits<std::size_t>::max();
  const std::size_t first = target.entries.size();
  for (std::size_t d = 0; d < detections.size(); ++d) {
    target.entries.push_back({.score = scores[d], .rank = static_cast<std::uint8_t>(d)});
  }
  std::vector<double> ious(detections.size() * truths.size());
  for (std::size_t d = 0; d < detections.size(); ++d) {
    for (std::size_t g = 0; g < truths.size(); ++g) {
      ious[d * truths.size() + g] = detections[d].iou(truths[g]);
    }
  }
  std::vector<bool> ignored(truths.size()), taken(truths.size());
  std::vector<std::size_t> order(truths.size());
  for (std::size_t a = 0; a < kAreas; ++a) {
    const AreaRange& range = kAreaRanges[a];
    for (std::size_t g = 0; g < truths.size(); ++g) {
      ignored[g] = truths[g].is_ignored || truths[g].is_outside(range);
      if (!ignored[g]) ++target.truths[a];
    }
    // Truths that count come first: one that does not is taken only when none of those fits.
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t g) { return ignored[g] ? 1 : 0; });
    for (int t = 0; t < kThresholds; ++t) {
      const auto bit = static_cast<std::uint16_t>(1U << static_cast<unsigned>(t));
      taken.assign(truths.size(), false);
      for (std::size_t d = 0; d < detections.size(); ++d) {
        double best = iou_threshold(t);
        std::size_t match = kNone;
        for (const std::size_t g : order) {
          if (taken[g]) continue;
          if (match != kNone && !ignored[match] && ignored[g]) break;
          // Of equals the last, as published.
          if (ious[d * truths.size() + g] < best) continue;
          best = ious[d * truths.size() + g];
          match = g;
        }
        Entry& entry = target.entries[first + d];
        const bool is_hit = match != kNone;
        if (is_hit) {
          taken[match] = true;
          entry.hit[a] |= bit;
        }
        if (is_hit ? static_cast<bool>(ignored[match]) : detections[d].is_outside(range))
          entry.ignored[a] |= bit;
      }
    }
  }
}

CocoMetrics::Measured CocoMetrics::measure(const ClassEntries& one,
                                           std::span<const std::uint32_t> order, std::size_t area,
                                           int most_detections, int threshold) {
  const auto bit = static_cast<std::uint16_t>(1U << static_cast<unsigned>(threshold));
  std::vector<double> precisions;  // at the k-th hit, recall (k + 1) / truths
  std::int64_t entries = 0;
  for (const std::uint32_t i : order) {
    const Entry& entry = one.entries[i];
    if (entry.rank >= most_detections || (entry.ignored[area] & bit) != 0) continue;
    ++entries;
    if ((entry.hit[area] & bit) == 0) continue;
    precisions.push_back(static_cast<double>(precisions.size() + 1) / static_cast<double>(entries));
  }
  for (std::size_t k = precisions.size(); k-- > 1;) {
    precisions[k - 1] = std::max(precisions[k - 1], precisions[k]);
  }
  const auto truths = static_cast<double>(one.truths[area]);
  double sum = 0;
  std::size_t k = 0;
  for (int i = 0; i < kRecalls; ++i) {
    while (k < precisions.size() && static_cast<double>(k + 1) / truths < recall_threshold(i)) ++k;
    if (k < precisions.size()) sum += precisions[k];
  }
  return {.ap = sum / kRecalls, .recall = static_cast<double>(precisions.size()) / truths};
}

CocoResult CocoMetrics::result() const {
  std::array<Mean, kCocoNumbers.size()> means;
  CocoResult result;
  for (const ClassEntries& one : classes_) {
    // Images come in order, so a stable sort leaves equal scores by image, then by rank.
    std::vector<std::uint32_t> order(one.entries.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::uint32_t i) { return one.entries[i].score; });
    for (std::size_t n = 0; n < kCocoNumbers.size(); ++n) {
      const CocoNumber& number = kCocoNumbers[n];
      const std::size_t area = area_index(number.area);
      if (one.truths[area] == 0) {
        if (n == 0) result.class_ap.emplace_back();
        continue;
      }
      const int first = number.iou == "0.75" ? 5 : 0;
      const int last = number.iou == "0.50:0.95" ? kThresholds - 1 : first;
      Mean over_thresholds;
      for (int t = first; t <= last; ++t) {
        const Measured measured = measure(one, order, area, number.most_detections, t);
        over_thresholds.add(number.is_recall ? measured.recall : measured.ap);
      }
      means[n].add(*over_thresholds.value());
      if (n == 0) result.class_ap.push_back(over_thresholds.value());
    }
  }
  for (std::size_t n = 0; n < kCocoNumbers.size(); ++n) result.numbers[n] = means[n].value();
  return result;
}

}  // namespace lantern::eval
