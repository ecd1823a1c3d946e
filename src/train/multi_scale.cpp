#include "train/multi_scale.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace lantern::train {
namespace {

double factor_limit(const MultiScale& scale) {
  const double c = scale.random == 1 ? 1.4 : scale.random;
  return std::min(c < 1 ? 1 / c : c, kMaxFactor);  // v and 1/v are drawn alike
}

std::int64_t stretch(std::int64_t side, double v, std::int64_t step) {
  const double steps = std::round(v * static_cast<double>(side) / static_cast<double>(step) + 1);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(steps)) * step;
}

std::int64_t step_of(const MultiScale& scale) {
  return std::max<std::int64_t>(1, scale.resize_step);
}

}  // namespace

void check(const MultiScale& scale, const std::string& where) {
  if (!(scale.random >= 0 && scale.random <= kMaxFactor) ||
      (scale.is_on() && scale.random < 1 / kMaxFactor)) {
    throw Error(ErrorCode::kInvalidConfig, where,
                "random is {}, want 0 (off), 1 (scales up to 1.4) or a largest scale up to {}",
                scale.random, kMaxFactor);
  }
  if (scale.resize_step < 1) {
    throw Error(ErrorCode::kInvalidConfig, where, "resize_step is {}, want >= 1 px",
                scale.resize_step);
  }
}

NetSize size_for_factor(const MultiScale& scale, double v) {
  const NetSize size{stretch(scale.net.width, v, step_of(scale)),
                     stretch(scale.net.height, v, step_of(scale))};
  const bool grew = size.width > scale.net.width || size.height > scale.net.height;
  return v < 1 && grew ? scale.net : size;
}

NetSize largest_size(const MultiScale& scale) {
  return scale.is_on() ? size_for_factor(scale, factor_limit(scale)) : scale.net;
}

NetSize size_of_block(const MultiScale& scale, std::int64_t k) {
  if (!scale.is_on()) return scale.net;
  const bool settles = scale.max_batches > 0 && k * kIterationsPerSize > scale.max_batches - 100;
  if (k <= 0 || settles) return largest_size(scale);
  Rng rng(scale.seed, "multi_scale", static_cast<std::uint64_t>(k));
  const double v = 1 + (factor_limit(scale) - 1) * static_cast<double>(rng.uniform());
  return size_for_factor(scale, rng.coin() ? v : 1 / v);
}

std::vector<NetSize> possible_sizes(const MultiScale& scale) {
  if (!scale.is_on()) return {scale.net};
  // The size is constant in v between the factors where a side's rounding (or the rule for v < 1)
  // switches.
  const double limit = factor_limit(scale);
  std::vector<double> switches{1 / limit, 1, limit};
  for (const std::int64_t side : {scale.net.width, scale.net.height}) {
    const double steps = static_cast<double>(side) / static_cast<double>(step_of(scale));
    if (!(steps > 0)) continue;
    for (double m = std::floor(steps / limit) + 0.5; m <= steps * limit; ++m) {
      if (m / steps > 1 / limit && m / steps < limit) switches.push_back(m / steps);
    }
  }
  std::sort(switches.begin(), switches.end());
  std::vector<NetSize> sizes;
  for (std::size_t i = 0; i < switches.size(); ++i) {
    sizes.push_back(size_for_factor(scale, switches[i]));
    if (i + 1 < switches.size()) {
      sizes.push_back(size_for_factor(scale, (switches[i] + switches[i + 1]) / 2));
    }
  }
  const auto before = [](const NetSize& a, const NetSize& b) {
    const std::int64_t area_a = a.width * a.height, area_b = b.width * b.height;
    return area_a != area_b ? area_a < area_b : a.width < b.width;
  };
  std::sort(sizes.begin(), sizes.end(), before);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::int64_t dynamic_minibatch(std::int64_t initial, NetSize largest, NetSize size,
                               std::int64_t plan_cap) {
  const std::int64_t area = std::max<std::int64_t>(1, size.width * size.height);
  std::int64_t d = initial * (largest.width * largest.height) / area;
  d = std::max<std::int64_t>(1, std::min(d, plan_cap));
  const std::int64_t reduced = d * 8 / 10;
  return reduced > initial ? reduced : d;
}

}  // namespace lantern::train
