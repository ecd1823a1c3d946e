#include "eval/nms.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace lantern::eval {
namespace {

/// Larger score first; equal scores by head, anchor, cell, then place in the list.
struct Candidate {
  float score;
  std::size_t index;
};

void sort_candidates(std::vector<Candidate>& candidates, const DetectionList& list) {
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    const Detection& p = list[a.index];
    const Detection& q = list[b.index];
    return std::tie(p.head, p.anchor, p.cell, a.index) <
           std::tie(q.head, q.anchor, q.cell, b.index);
  });
}

float overlap(const Box& kept, const Box& box, const NmsOptions& options) {
  switch (options.kind) {
    case NmsKind::kDefault:
    case NmsKind::kCorners:
      return iou(kept, box);
    case NmsKind::kGreedy:
      return diou(kept, box, 0.6F);  // the name notwithstanding
    case NmsKind::kDiou:
      return diou(kept, box, options.beta);
  }
  return 0;
}

/// Calls drop(index) for every candidate that overlaps an earlier kept one.
template <typename Overlap, typename Drop>
void suppress_sorted(const std::vector<Candidate>& candidates, const DetectionList& list,
                     float threshold, Overlap overlap_of, Drop drop) {
  std::vector<Box> kept;
  for (const Candidate& candidate : candidates) {
    const Box& box = list[candidate.index].box;
    const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](const Box& better) {
      return overlap_of(better, box) > threshold;
    });
    if (is_covered) {
      drop(candidate.index);
    } else {
      kept.push_back(box);
    }
  }
}

template <typename Score>
void sort_list(DetectionList& list, Score score) {
  std::vector<Candidate> candidates(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) candidates[i] = {score(i), i};
  sort_candidates(candidates, list);
  std::vector<std::size_t> order(list.size());
  std::transform(candidates.begin(), candidates.end(), order.begin(),
                 [](const Candidate& candidate) { return candidate.index; });
  list.reorder(order);
}

/// NaN, which no order holds, counts as 0; so does what is negative.
float positive(float score) { return score > 0 ? score : 0; }

void forget_classes(DetectionList& list, std::size_t i) {
  std::ranges::fill(list.probabilities(i), 0.0F);
}

}  // namespace

std::optional<NmsKind> parse_nms_kind(std::string_view name) {
  for (const auto& [text, kind] : kNmsKinds) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

void suppress(DetectionList& detections, const NmsOptions& options) {
  for (std::size_t i = 0; i < detections.size(); ++i) {
    if (!(detections[i].objectness > 0)) forget_classes(detections, i);
    for (float& probability : detections.probabilities(i)) probability = positive(probability);
  }
  std::vector<Candidate> candidates;
  for (int c = 0; c < detections.classes(); ++c) {
    const auto column = static_cast<std::size_t>(c);
    candidates.clear();
    for (std::size_t i = 0; i < detections.size(); ++i) {
      const float probability = detections.probabilities(i)[column];
      if (probability > 0) candidates.push_back({probability, i});
    }
    sort_candidates(candidates, detections);
    suppress_sorted(
        candidates, detections, options.threshold,
        [&](const Box& kept, const Box& box) { return overlap(kept, box, options); },
        [&](std::size_t i) { detections.probabilities(i)[column] = 0; });
  }
  sort_list(detections, [&](std::size_t i) { return detections.best_probability(i); });
}

void suppress_by_objectness(DetectionList& detections, float threshold) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    if (detections[i].objectness > 0) {
      candidates.push_back({detections[i].objectness, i});
    } else {
      forget_classes(detections, i);
    }
  }
  sort_candidates(candidates, detections);
  suppress_sorted(candidates, detections, threshold, iou, [&](std::size_t i) {
    detections[i].objectness = 0;
    forget_classes(detections, i);
  });
  sort_list(detections, [&](std::size_t i) { return positive(detections[i].objectness); });
}

}  // namespace lantern::eval
