#include "eval/average_precision.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace lantern::eval {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// AP of one class from its curve of true positives, whose k-th point has recall (k + 1) / truths.
double average_precision(const std::vector<CurvePoint>& curve, std::int64_t truths, int points) {
  if (truths == 0 || curve.empty()) return 0;
  const auto found = static_cast<std::int64_t>(curve.size());
  // Precision falls between two true positives, so its maximum from a recall on is at one of them.
  std::vector<double> envelope(curve.size());
  double best = 0;
  for (std::int64_t k = found - 1; k >= 0; --k) {
    best = std::max(best, curve[static_cast<std::size_t>(k)].precision);
    envelope[static_cast<std::size_t>(k)] = best;
  }
  double sum = 0;
  if (points == 0) {
    for (const double precision : envelope) sum += precision;
    return sum / static_cast<double>(truths);
  }
  for (std::int64_t i = 0; i < points; ++i) {
    // Smallest k with (k + 1) / truths >= i / (points - 1), in whole numbers.
    const std::int64_t k =
        i == 0 ? 0 : (i * truths + points - 2) / (static_cast<std::int64_t>(points) - 1) - 1;
    if (k < found) sum += envelope[static_cast<std::size_t>(std::max<std::int64_t>(k, 0))];
  }
  return sum / points;
}

}  // namespace

bool is_same_object(const Truth& a, const Truth& b) {
  constexpr float kTolerance = 2e-6F;
  return a.class_id == b.class_id && std::abs(a.box.x - b.box.x) < kTolerance &&
         std::abs(a.box.y - b.box.y) < kTolerance && std::abs(a.box.w - b.box.w) < kTolerance &&
         std::abs(a.box.h - b.box.h) < kTolerance;
}

AveragePrecision::AveragePrecision(int classes)
    : classes_(classes),
      entries_(static_cast<std::size_t>(std::max(classes, 0))),
      truths_(static_cast<std::size_t>(std::max(classes, 0)), 0) {
  LANTERN_ASSERT(classes >= 0, "no negative number of classes");
}

void AveragePrecision::add_image(const DetectionList& detections, std::span<const Truth> truths,
                                 std::span<const Truth> difficult) {
  struct Numbered {
    Box box;
    std::int64_t number;
  };
  std::vector<std::vector<Numbered>> truths_of(static_cast<std::size_t>(classes_));
  std::vector<std::vector<Box>> difficult_of(static_cast<std::size_t>(classes_));
  const auto in_range = [&](int class_id) { return class_id >= 0 && class_id < classes_; };
  for (const Truth& truth : difficult) {
    if (in_range(truth.class_id)) {
      difficult_of[static_cast<std::size_t>(truth.class_id)].push_back(truth.box);
    }
  }
  for (const Truth& truth : truths) {
    if (!in_range(truth.class_id)) {
      ++ignored_truths_;
      continue;
    }
    if (std::ranges::any_of(difficult, [&](const Truth& d) { return is_same_object(d, truth); })) {
      continue;
    }
    const auto class_id = static_cast<std::size_t>(truth.class_id);
    truths_of[class_id].push_back({truth.box, truths_[class_id]++});
  }
  const int classes = std::min(classes_, detections.classes());
  for (std::size_t i = 0; i < detections.size(); ++i) {
    const std::span<const float> probabilities = detections.probabilities(i);
    for (int c = 0; c < classes; ++c) {
      const auto class_id = static_cast<std::size_t>(c);
      if (!(probabilities[class_id] > 0)) continue;
      Entry entry{.score = probabilities[class_id]};
      for (const Numbered& truth : truths_of[class_id]) {
        const float value = iou(detections[i].box, truth.box);
        if (value > entry.iou) {
          entry.iou = value;
          entry.truth = truth.number;
        }
      }
      for (const Box& box : difficult_of[class_id]) {
        entry.difficult_iou = std::max(entry.difficult_iou, iou(detections[i].box, box));
      }
      entries_[class_id].push_back(entry);
    }
  }
  ++images_;
  sorted_ = false;
}

ClassResult AveragePrecision::class_result(int class_id, const MapOptions& options,
                                           double& iou_sum) const {
  const auto index = static_cast<std::size_t>(class_id);
  ClassResult result;
  result.truths = truths_[index];
  std::vector<bool> taken(static_cast<std::size_t>(result.truths), false);
  std::int64_t tp = 0;
  std::int64_t fp = 0;
  for (const Entry& entry : entries_[index]) {
    const bool has_match = entry.truth >= 0 && entry.iou > options.iou_threshold;
    if (!has_match && entry.difficult_iou > options.iou_threshold) continue;
    ++result.entries;
    const bool is_hit = has_match && !taken[static_cast<std::size_t>(entry.truth)];
    const bool is_counted = entry.score > options.confidence_threshold;
    if (is_hit) {
      taken[static_cast<std::size_t>(entry.truth)] = true;
      ++tp;
      result.curve.push_back(
          {.score = entry.score,
           .precision = ratio(static_cast<double>(tp), static_cast<double>(tp + fp)),
           .recall = ratio(static_cast<double>(tp), static_cast<double>(result.truths))});
      if (is_counted) {
        ++result.tp;
        iou_sum += entry.iou;
      }
    } else {
      ++fp;
      if (is_counted) ++result.fp;
    }
  }
  result.ap = average_precision(result.curve, result.truths, options.points);
  return result;
}

MapResult AveragePrecision::result(const MapOptions& options) const {
  if (options.points < 0) {
    throw Error(ErrorCode::kUsage, "-points", "is {}, want 0 (area under the curve), 11 or 101",
                options.points);
  }
  if (!sorted_) {
    // Images come in order, so a stable sort leaves equal scores by image, then by detection.
    for (std::vector<Entry>& entries : entries_) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const Entry& a, const Entry& b) { return a.score > b.score; });
    }
    sorted_ = true;
  }
  MapResult result;
  result.options = options;
  result.ignored_truths = ignored_truths_;
  double iou_sum = 0;
  double ap_sum = 0;
  for (int c = 0; c < classes_; ++c) {
    result.classes.push_back(class_result(c, options, iou_sum));
    const ClassResult& one = result.classes.back();
    result.detections_count += one.entries;
    result.truths += one.truths;
    result.tp += one.tp;
    result.fp += one.fp;
    ap_sum += one.ap;
    if (one.truths == 0) ++result.classes_without_truth;
  }
  result.fn = result.truths - result.tp;
  result.map = ratio(ap_sum, classes_);
  result.map_with_truths = ratio(ap_sum, classes_ - result.classes_without_truth);
  const auto tp = static_cast<double>(result.tp);
  const auto counted = static_cast<double>(result.tp + result.fp);
  result.precision = ratio(tp, counted);
  result.recall = ratio(tp, static_cast<double>(result.truths));
  result.f1 = ratio(2 * result.precision * result.recall, result.precision + result.recall);
  result.average_iou = ratio(iou_sum, counted);
  return result;
}

void RecallCounter::add_image(const DetectionList& list, std::span<const Truth> image_truths) {
  ++images;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].objectness > kObjectness) ++detections;
  }
  for (const Truth& truth : image_truths) {
    float best = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].objectness > kObjectness) best = std::max(best, iou(list[i].box, truth.box));
    }
    ++truths;
    iou_sum += best;
    if (best > iou_threshold) ++found;
  }
}

double RecallCounter::recall() const {
  return ratio(static_cast<double>(found), static_cast<double>(truths));
}

double RecallCounter::average_iou() const { return ratio(iou_sum, static_cast<double>(truths)); }

double RecallCounter::detections_per_image() const {
  return ratio(static_cast<double>(detections), static_cast<double>(images));
}

std::string RecallCounter::line() const {
  return fmt::format("{:5d} {:5d} {:5d}\tRPs/Img: {:.2f}\tIOU: {:.2f}%\tRecall:{:.2f}%",
                     images == 0 ? 0 : images - 1, found, truths, detections_per_image(),
                     100 * average_iou(), 100 * recall());
}

}  // namespace lantern::eval
