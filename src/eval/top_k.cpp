#include "eval/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace lantern::eval {

std::vector<int> top_classes(std::span<const float> scores, int k) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = static_cast<std::ptrdiff_t>(std::clamp<std::int64_t>(k, 0, std::ssize(order)));
  const auto score = [&](int i) {
    const float value = scores[static_cast<std::size_t>(i)];
    return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
  };
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int a, int b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

TopK::TopK(int classes, int k)
    : k_(std::clamp(k, 1, classes)), classes_(static_cast<std::size_t>(classes)) {}

int TopK::add(std::span<const float> scores, int truth) {
  LANTERN_ASSERT(scores.size() == classes_.size(), "a score for each class");
  LANTERN_ASSERT(truth >= 0 && static_cast<std::size_t>(truth) < classes_.size(), "a class");
  const std::vector<int> top = top_classes(scores, k_);
  Class& own = classes_[static_cast<std::size_t>(truth)];
  ++images_;
  ++own.images;
  if (top.front() == truth) {
    ++first_;
    ++own.first;
  }
  if (std::ranges::find(top, truth) != top.end()) ++among_;
  return top.front();
}

}  // namespace lantern::eval
