#include "eval/anchors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace lantern::eval {

namespace {

constexpr int kMostRounds = 1000;  // as in Darknet

struct WeightedSize {
  BoxSize size;
  double weight = 0;  // boxes that have it
};

std::vector<WeightedSize> weighted_sizes(std::span<const BoxSize> boxes) {
  std::vector<BoxSize> sorted(boxes.begin(), boxes.end());
  std::ranges::sort(sorted, [](const BoxSize& a, const BoxSize& b) {
    return a.w != b.w ? a.w < b.w : a.h < b.h;
  });
  std::vector<WeightedSize> sizes;
  for (const BoxSize& box : sorted) {
    if (sizes.empty() || !(sizes.back().size == box)) sizes.push_back({box, 0});
    ++sizes.back().weight;
  }
  return sizes;
}

struct Nearest {
  std::size_t index = 0;
  double iou = 0;
};

// The first of equals.
Nearest nearest_anchor(const BoxSize& box, std::span<const BoxSize> anchors) {
  Nearest best{0, -1};
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    if (const double iou = centred_iou(box, anchors[i]); iou > best.iou) best = {i, iou};
  }
  return best;
}

double uniform53(Rng& rng) { return static_cast<double>(rng.next_u64() >> 11) * 0x1p-53; }

// k-means++ (Arthur and Vassilvitskii 2007): a further centre is drawn with a probability that
// grows with the square of the distance from the nearest one so far. Fewer centres when all sizes
// have one.
std::vector<BoxSize> first_centres(std::span<const WeightedSize> sizes, std::size_t count,
                                   Rng& rng) {
  std::vector<double> distance(sizes.size(), 1);
  const auto share = [&](std::size_t i) { return sizes[i].weight * distance[i] * distance[i]; };
  std::vector<BoxSize> centres;
  while (centres.size() < count) {
    double total = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) total += share(i);
    if (!(total > 0)) break;
    double place = uniform53(rng) * total;
    // Rounding can leave a rest behind the last one: then the last that had a share is taken.
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!(share(i) > 0)) continue;
      chosen = i;
      place -= share(i);
      if (place < 0) break;
    }
    centres.push_back(sizes[chosen].size);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      distance[i] = std::min(distance[i], 1 - centred_iou(sizes[i].size, centres.back()));
    }
  }
  return centres;
}

struct Clusters {
  std::vector<BoxSize> centres;
  double iou_sum = -1;  // over all boxes, with the nearest centre
};

// The mean is not the best centre for a distance of 1 - IoU, so a round can make things worse: the
// best round counts, not the last.
Clusters settle(std::span<const WeightedSize> sizes, std::vector<BoxSize> centres) {
  struct Sum {
    double w = 0, h = 0, weight = 0;
  };
  Clusters best;
  std::vector<std::size_t> assigned(sizes.size(), centres.size());
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<Sum> sums(centres.size());
    bool has_moved = false;
    double iou_sum = 0;
    std::size_t worst = 0;
    double worst_distance = -1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto& [size, weight] = sizes[i];
      const Nearest nearest = nearest_anchor(size, centres);
      has_moved = has_moved || assigned[i] != nearest.index;
      assigned[i] = nearest.index;
      iou_sum += weight * nearest.iou;
      sums[nearest.index].w += weight * size.w;
      sums[nearest.index].h += weight * size.h;
      sums[nearest.index].weight += weight;
      if (const double distance = weight * (1 - nearest.iou); distance > worst_distance) {
        worst = i;
        worst_distance = distance;
      }
    }
    if (iou_sum > best.iou_sum) best = {centres, iou_sum};
    if (!has_moved) break;
    for (std::size_t c = 0; c < centres.size(); ++c) {
      const Sum& sum = sums[c];
      // A centre that lost all its boxes starts again where the fit is worst.
      centres[c] =
          sum.weight > 0 ? BoxSize{sum.w / sum.weight, sum.h / sum.weight} : sizes[worst].size;
    }
  }
  return best;
}

}  // namespace

double centred_iou(const BoxSize& a, const BoxSize& b) {
  const double common = std::min(a.w, b.w) * std::min(a.h, b.h);
  return common / (a.w * a.h + b.w * b.h - common);
}

std::int64_t distinct_sizes(std::span<const BoxSize> boxes) {
  return static_cast<std::int64_t>(weighted_sizes(boxes).size());
}

std::vector<BoxSize> cluster_anchors(
    std::span<const BoxSize> boxes, const AnchorOptions& options,
    const std::function<void(std::int64_t, std::int64_t)>& progress) {
  LANTERN_ASSERT(options.clusters > 0 && options.restarts > 0,
                 "at least one cluster and one start");
  const std::vector<WeightedSize> sizes = weighted_sizes(boxes);
  Clusters best;
  for (int start = 0; start < options.restarts; ++start) {
    Rng rng(options.seed, "anchors", static_cast<std::uint64_t>(start));
    Clusters found =
        settle(sizes, first_centres(sizes, static_cast<std::size_t>(options.clusters), rng));
    if (found.iou_sum > best.iou_sum) best = std::move(found);
    if (progress) progress(start + 1, options.restarts);
  }
  std::ranges::sort(best.centres, [](const BoxSize& a, const BoxSize& b) {
    return a.w * a.h != b.w * b.h ? a.w * a.h < b.w * b.h : a.w < b.w;
  });
  return best.centres;
}

std::vector<BoxSize> rounded_anchors(std::span<const BoxSize> anchors, int net_width) {
  const double step = net_width > 32 ? 1 : 1e-4;
  const auto rounded = [&](double length) {
    return step * std::max(std::nearbyint(length / step), 1.0);
  };
  std::vector<BoxSize> result;
  for (const BoxSize& anchor : anchors) result.push_back({rounded(anchor.w), rounded(anchor.h)});
  return result;
}

AnchorFit fit_anchors(std::span<const BoxSize> boxes, std::span<const BoxSize> anchors) {
  AnchorFit fit{.boxes = std::vector<std::int64_t>(anchors.size(), 0)};
  if (boxes.empty() || anchors.empty()) return fit;
  double iou_sum = 0;
  std::int64_t reached = 0;
  for (const BoxSize& box : boxes) {
    const Nearest nearest = nearest_anchor(box, anchors);
    iou_sum += nearest.iou;
    if (nearest.iou > 0.5) ++reached;
    ++fit.boxes[nearest.index];
  }
  fit.average_iou = iou_sum / static_cast<double>(boxes.size());
  fit.recall = static_cast<double>(reached) / static_cast<double>(boxes.size());
  return fit;
}

std::vector<std::vector<int>> propose_masks(std::span<const BoxSize> anchors,
                                            std::span<const int> strides) {
  constexpr double kPixelsOfAStride = 30.0 / 8;
  std::vector<std::size_t> heads(strides.size());
  std::iota(heads.begin(), heads.end(), std::size_t{0});
  std::ranges::stable_sort(heads, {}, [&](std::size_t head) { return strides[head]; });
  std::vector<std::vector<int>> masks(strides.size());
  std::size_t next = 0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const std::size_t heads_after = heads.size() - h - 1;
    std::vector<int>& mask = masks[heads[h]];
    const double limit = kPixelsOfAStride * strides[heads[h]];
    while (next < anchors.size()) {
      const bool is_needed_later = anchors.size() - next <= heads_after;
      const double length = std::sqrt(anchors[next].w * anchors[next].h);
      const bool fits = heads_after == 0 || length < limit;
      if (!mask.empty() && (!fits || is_needed_later)) break;
      // With fewer anchors than heads, only those that suit.
      if (mask.empty() && !fits && anchors.size() < heads.size()) break;
      mask.push_back(static_cast<int>(next++));
    }
  }
  return masks;
}

}  // namespace lantern::eval
