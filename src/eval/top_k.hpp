#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lantern::eval {

/// The k classes with the largest scores, largest first; of equal ones the first. Scores that are
/// no numbers come last. Fewer when there are fewer.
std::vector<int> top_classes(std::span<const float> scores, int k);

/// Counts how often the right class is the first, and among the first k.
class TopK {
 public:
  /// 1 <= k; more than `classes` means all.
  TopK(int classes, int k);

  /// Returns the first class.
  int add(std::span<const float> scores, int truth);
  int k() const { return k_; }
  std::int64_t images() const { return images_; }
  /// Shares, 0 to 1; 0 without an image.
  double top1() const { return share(first_, images_); }
  double topk() const { return share(among_, images_); }
  struct Class {
    std::int64_t images = 0, first = 0;  ///< that are of it; that are found to be
    double top1() const { return share(first, images); }
  };
  const std::vector<Class>& classes() const { return classes_; }

 private:
  static double share(std::int64_t part, std::int64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
  }
  int k_;
  std::int64_t images_ = 0, first_ = 0, among_ = 0;
  std::vector<Class> classes_;
};

}  // namespace lantern::eval
