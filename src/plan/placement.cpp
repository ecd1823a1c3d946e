#include "plan/placement.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "plan/program.hpp"

namespace lantern::plan {

namespace {

using Order = std::vector<std::size_t>;

Bytes aligned(const Interval& interval) { return round_up(interval.bytes, interval.alignment); }

double length(const Interval& interval) {
  return static_cast<double>(interval.last - interval.first + 1);
}

// Blocks that have their places. Each goes to the lowest offset where it fits between those that
// live at the same time.
class Shelf {
 public:
  explicit Shelf(const std::vector<Interval>& intervals)
      : intervals_(intervals), offsets_(intervals.size(), 0) {
    placed_.reserve(intervals.size());
  }

  void clear() {
    placed_.clear();
    placed_blocks_.clear();
    top_ = 0;
  }

  // Places blocks in this order; leaves off behind the one that reaches `most`.
  void add(const Order& order, Bytes most) {
    for (const std::size_t i : order) {
      const Interval& block = intervals_[i];
      const Bytes size = aligned(block);
      Bytes offset = 0;
      for (const Placed& other : placed_) {
        if (other.begin >= offset + size) break;
        if (other.last < block.first || block.last < other.first) continue;
        offset = std::max(offset, round_up(other.end, block.alignment));
      }
      offsets_[i] = offset;
      placed_.insert(std::ranges::upper_bound(placed_, offset, {}, &Placed::begin),
                     {static_cast<std::int32_t>(block.first), static_cast<std::int32_t>(block.last),
                      offset, offset + size});
      placed_blocks_.push_back(i);
      top_ = std::max(top_, offset + size);
      if (top_ >= most) return;
    }
  }

  Bytes top() const { return top_; }
  const std::vector<Bytes>& offsets() const { return offsets_; }

  // Calls `visit(i)` for the placed blocks that end above `level`.
  template <typename Visit>
  void above(Bytes level, const Visit& visit) const {
    for (const std::size_t i : placed_blocks_) {
      if (offsets_[i] + aligned(intervals_[i]) > level) visit(i);
    }
  }

 private:
  struct Placed {
    std::int32_t first, last;
    Bytes begin, end;
  };

  const std::vector<Interval>& intervals_;
  std::vector<Placed> placed_;  // by begin
  Order placed_blocks_;         // in the order they came
  std::vector<Bytes> offsets_;
  Bytes top_ = 0;
};

// The largest key first.
void sort_by(Order& order, const std::function<double(std::size_t)>& key) {
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
}

}  // namespace

Bytes live_peak(const std::vector<Interval>& intervals) {
  std::vector<std::pair<std::int64_t, Bytes>> events;
  for (const Interval& interval : intervals) {
    events.emplace_back(interval.first, interval.bytes);
    events.emplace_back(interval.last + 1, -interval.bytes);
  }
  // At equal steps frees come first: they belong to steps that are over.
  std::ranges::sort(events);
  Bytes live = 0;
  Bytes peak = 0;
  for (const auto& [step, change] : events) {
    live += change;
    peak = std::max(peak, live);
  }
  return peak;
}

Packing pack(const std::vector<Interval>& intervals, Bytes enough) {
  // Blocks of so small a part of the peak find room wherever the rest lies.
  constexpr Bytes kSmall = 16384;
  constexpr int kMostRounds = 150;
  constexpr double kMostComparisons = 2e9;  // a fraction of a second, with thousands of blocks too
  constexpr double kBoost = 2;

  const Bytes peak = live_peak(intervals);
  const Bytes goal = std::max(enough, peak);
  Order large(intervals.size());
  std::iota(large.begin(), large.end(), std::size_t{0});
  const auto rest = std::ranges::stable_partition(
      large, [&](std::size_t i) { return intervals[i].bytes >= peak / kSmall; });
  Order small(rest.begin(), rest.end());
  large.erase(rest.begin(), rest.end());

  Shelf shelf(intervals);
  constexpr Bytes kNever = std::numeric_limits<Bytes>::max();
  Bytes least = kNever;
  Order best;
  const auto consider = [&] {
    shelf.clear();
    shelf.add(large, least);
    if (shelf.top() >= least) return;
    least = shelf.top();
    best = large;
  };
  std::vector<double> keys(intervals.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = static_cast<double>(intervals[i].bytes) * length(intervals[i]);
  const auto by_key = [&](std::size_t i) { return keys[i]; };
  const auto start = [&](const std::function<double(std::size_t)>& key) {
    if (least <= goal) return;
    sort_by(large, key);
    consider();
  };
  start(by_key);
  start([&](std::size_t i) { return -static_cast<double>(intervals[i].first); });
  start([&](std::size_t i) { return static_cast<double>(intervals[i].last); });
  start([&](std::size_t i) { return length(intervals[i]); });
  start([&](std::size_t i) { return static_cast<double>(intervals[i].bytes); });

  // The blocks that stuck out go earlier and earlier in the order until they no longer do; others
  // do then, and so the trouble moves to where there is room for it ("squeaky wheel" search). A
  // fixed number of rounds keeps planning fast and repeatable.
  const auto count = static_cast<double>(large.size());
  const int rounds = static_cast<int>(
      std::min<double>(kMostRounds, kMostComparisons / std::max(1.0, count * count)));
  for (int round = 0; round < rounds && least > goal; ++round) {
    shelf.above(std::max(goal, least - least / 50), [&](std::size_t i) { keys[i] *= kBoost; });
    sort_by(large, by_key);
    consider();
  }

  sort_by(small, by_key);
  shelf.clear();
  shelf.add(best, kNever);
  shelf.add(small, kNever);
  return {shelf.offsets(), shelf.top()};
}

}  // namespace lantern::plan
