#include "plan/placement.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "plan/program.hpp"

namespace lantern::plan {

namespace {

using Order = std::vector<std::size_t>;

Bytes aligned(const Interval& interval) { return round_up(interval.bytes, interval.alignment); }

// Lowest offset where each block fits between the already placed blocks that live at the same time.
// Nothing as soon as the top reaches `most`: an order that is no better is left half-way.
std::optional<Packing> first_fit(const std::vector<Interval>& intervals, const Order& order,
                                 Bytes most) {
  struct Placed {
    std::int64_t first;
    std::int64_t last;
    Bytes begin;
    Bytes end;
  };
  Packing packing{.offsets = std::vector<Bytes>(intervals.size(), 0)};
  std::vector<Placed> placed;  // by begin
  placed.reserve(intervals.size());
  for (const std::size_t i : order) {
    const Interval& block = intervals[i];
    const Bytes size = aligned(block);
    Bytes offset = 0;
    for (const Placed& other : placed) {
      if (other.last < block.first || block.last < other.first) continue;
      if (other.begin >= offset + size) break;
      offset = std::max(offset, round_up(other.end, block.alignment));
    }
    packing.offsets[i] = offset;
    packing.bytes = std::max(packing.bytes, offset + size);
    if (packing.bytes >= most) return std::nullopt;
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::begin),
                  {block.first, block.last, offset, offset + size});
  }
  return packing;
}

Order sorted_by(const std::vector<Interval>& intervals,
                const std::function<double(const Interval&)>& key) {
  Order order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return key(intervals[a]) > key(intervals[b]); });
  return order;
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
  const auto length = [](const Interval& i) { return static_cast<double>(i.last - i.first + 1); };
  const auto size = [](const Interval& i) { return static_cast<double>(i.bytes); };
  Packing best;
  Order best_order;
  const auto consider = [&](const Order& order) {
    if (!best_order.empty() && best.bytes <= enough) return;
    const Bytes most = best_order.empty() ? std::numeric_limits<Bytes>::max() : best.bytes;
    std::optional<Packing> packing = first_fit(intervals, order, most);
    if (!packing) return;
    best = std::move(*packing);
    best_order = order;
  };
  consider(sorted_by(intervals, [&](const Interval& i) { return size(i) * length(i); }));
  consider(sorted_by(intervals, size));
  consider(sorted_by(intervals, length));
  consider(sorted_by(intervals, [](const Interval& i) { return -static_cast<double>(i.first); }));
  consider(sorted_by(intervals, [](const Interval& i) { return static_cast<double>(i.last); }));

  const Bytes goal = std::max(enough, live_peak(intervals));
  constexpr int kMostRounds = 200;
  constexpr double kMostComparisons = 2e8;  // a fraction of a second, with thousands of blocks too
  const auto count = static_cast<double>(intervals.size());
  const auto rounds =
      std::min(kMostRounds,
               static_cast<int>(std::min(1e6, kMostComparisons / std::max(1.0, count * count))));
  for (int round = 0; round < rounds && best.bytes > goal; ++round) {
    // Blocks that touch the top go first in the order; a fixed number of rounds keeps planning fast
    // and repeatable.
    Order order = best_order;
    const std::size_t shift = static_cast<std::size_t>(round) % order.size();
    const auto touches = [&](std::size_t i) {
      return best.offsets[i] + aligned(intervals[i]) == best.bytes;
    };
    const auto top = std::ranges::find_if(order, touches);
    if (top == order.end()) break;
    const std::size_t value = *top;
    order.erase(top);
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(std::min(shift, order.size())), value);
    consider(order);
  }
  return best;
}

}  // namespace lantern::plan
