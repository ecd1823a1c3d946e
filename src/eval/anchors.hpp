#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lantern::eval {

/// Width and height in pixels of the network input.
struct BoxSize {
  double w = 0, h = 0;
  bool operator==(const BoxSize&) const = default;
};

/// IoU of two boxes with the same centre; sizes are positive.
double centred_iou(const BoxSize& a, const BoxSize& b);

std::int64_t distinct_sizes(std::span<const BoxSize> boxes);

struct AnchorOptions {
  int clusters = 5;
  std::uint64_t seed = 0;
  int restarts = 20;
};

/// At most `clusters` sizes, area ascending: k-means with distance 1 - IoU of centred boxes
/// (Redmon and Farhadi 2017, arXiv:1612.08242), started by k-means++ `restarts` times; the sizes
/// with the largest mean IoU over the boxes are kept. Fewer only when the boxes have fewer distinct
/// sizes. A pure function of boxes (in any order) and options. `progress` is called after every
/// start and may throw.
std::vector<BoxSize> cluster_anchors(
    std::span<const BoxSize> boxes, const AnchorOptions& options,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress = {});

/// As they will stand in a cfg: whole pixels, or four decimals in nets at most 32 pixels wide (as
/// Darknet writes them; those are grid cells of [region]). Never 0.
std::vector<BoxSize> rounded_anchors(std::span<const BoxSize> anchors, int net_width);

struct AnchorFit {
  double average_iou = 0;           ///< of each box with its best anchor
  double recall = 0;                ///< share of the boxes whose best anchor has IoU > 0.5
  std::vector<std::int64_t> boxes;  ///< by anchor: boxes that it is the best for, first of equals
};
AnchorFit fit_anchors(std::span<const BoxSize> boxes, std::span<const BoxSize> anchors);

/// Which anchors (area ascending) the head of each stride should have. As Darknet advises: below 30
/// pixels at stride 8, below 60 at stride 16 and so on, the rest at the largest; every head gets
/// one when there are enough.
std::vector<std::vector<int>> propose_masks(std::span<const BoxSize> anchors,
                                            std::span<const int> strides);

}  // namespace lantern::eval
