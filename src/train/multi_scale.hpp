#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lantern::train {

struct NetSize {
  std::int64_t width = 0, height = 0;  ///< pixels
  bool operator==(const NetSize&) const = default;
};

/// Multi-scale training (reference/training.md 7). `random` comes from the last detection head.
struct MultiScale {
  NetSize net;                    ///< sizes of the cfg, W0 x H0
  double random = 0;              ///< 0: off; 1: scales up to 1.4; else the largest scale itself
  std::int64_t resize_step = 32;  ///< pixels; sizes are multiples of it
  std::int64_t max_batches = 0;   ///< 0: no end known
  std::uint64_t seed = 0;

  bool is_on() const { return random > 0; }
};

/// Throws an Error (kInvalidConfig, at `where`) for a random outside 0 ... kMaxFactor (or below 1 /
/// kMaxFactor) or a resize_step below 1. The functions below stay defined for such values.
void check(const MultiScale& scale, const std::string& where);
inline constexpr double kMaxFactor = 10;

/// Iterations that share one size.
inline constexpr std::int64_t kIterationsPerSize = 10;

/// Size for the iterations 10 k ... 10 k + 9, a pure function of (scale, k), so that the loader
/// works ahead and every size has its plan. The largest at k = 0 and in the last 100 iterations;
/// the cfg's own where random is off.
NetSize size_of_block(const MultiScale& scale, std::int64_t k);
inline NetSize size_at(const MultiScale& scale, std::int64_t iteration) {
  return size_of_block(scale, iteration / kIterationsPerSize);
}

/// Size for a drawn scale factor v: round(v W0 / step + 1) step; a v < 1 that would still enlarge a
/// side gives W0 x H0.
NetSize size_for_factor(const MultiScale& scale, double v);
NetSize largest_size(const MultiScale& scale);
/// Every size that can be drawn, and the largest, by rising area; each of them needs a plan.
std::vector<NetSize> possible_sizes(const MultiScale& scale);

/// dynamic_minibatch=1: images in a mini-batch at `size`. d = int(initial max_w max_h / (w h)), at
/// most `plan_cap` (what the memory plan of that size holds); int(0.8 d) where that is more than
/// the initial one, else d.
std::int64_t dynamic_minibatch(std::int64_t initial, NetSize largest, NetSize size,
                               std::int64_t plan_cap);

}  // namespace lantern::train
