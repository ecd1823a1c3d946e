#include "plan/search.hpp"

#include <algorithm>

#include "plan/local_search.hpp"

namespace lantern::plan {

namespace {

struct Cut {
  std::shared_ptr<const Problem> problem;
  std::unique_ptr<LocalSearch> local;
};

constexpr int kMostRounds = 6;

class Search {
 public:
  Search(const graph::Selected& selected, std::span<const std::uint32_t> ops, const Limits& limits,
         const PlanOptions& options)
      : selected_(selected),
        ops_(ops),
        limits_(limits),
        options_(options),
        segments_(find_segments(selected, ops)) {}

  // Without places: only the time and what is saved are of interest.
  Planned kept() {
    Limits limits = limits_;
    limits.memory = PlanOptions::kUnlimited;
    const auto problem = cut(cut_all(options_.chunks > 0 ? options_.chunks : 1));
    Scheduler scheduler(*problem, limits);
    return {problem, scheduler.run(Choices(problem->pieces.size(), Choice::kKeep)), {}, 0};
  }

  Planned unlimited() {
    Planned all = kept();
    all.places = place(all.schedule);
    return all;
  }

  Planned fastest() {
    Planned all = kept();
    if (all.schedule.peak <= limits_.memory) {
      all.places = place(all.schedule, limits_.memory);
      if (all.places.arena_bytes <= limits_.memory) return all;
    }
    seconds_unlimited_ = all.schedule.seconds;
    // Where the least memory is near, it decides: what is below it is refused, by whatever luck a
    // search might find something.
    Cut quick = quick_least();
    std::optional<Cut> least;
    if (limits_.memory < arena_of(quick)) {
      least = least_memory(quick);
      Planned smallest = planned(*least);
      if (smallest.places.arena_bytes > limits_.memory) return smallest;
    }
    std::vector<Cut> cuts;
    for (const std::vector<int>& chunks :
         ways_to_cut(0.6 * static_cast<double>(limits_.memory), {1.0, 0.4, 0.15, 0.05}))
      cuts.push_back(scanned(chunks, limits_, time_cost));
    std::ranges::stable_sort(cuts, {}, [](const Cut& c) { return c.local->cost(); });
    cuts.resize(std::min<std::size_t>(cuts.size(), 2));
    if (least) cuts.push_back(from_least(*least));
    std::optional<Planned> best = best_of(cuts);
    if (!best) {
      if (!least) least = least_memory(quick);
      Planned smallest = planned(*least);
      if (smallest.places.arena_bytes > limits_.memory) return smallest;
      cuts.clear();
      cuts.push_back(from_least(*least));
      best = best_of(cuts);
      if (!best) best = std::move(smallest);
    }
    best->evaluations = evaluations_;
    return std::move(*best);
  }

  Planned smallest() {
    Cut quick = quick_least();
    return planned(least_memory(quick));
  }

 private:
  // The search for speed goes on from the plan that needs the least.
  Cut from_least(const Cut& least) const {
    Cut made{least.problem, std::make_unique<LocalSearch>(*least.problem, limits_, time_cost)};
    made.local->consider(least.local->choices());
    return made;
  }

  std::optional<Planned> best_of(const std::vector<Cut>& cuts) {
    std::optional<Planned> best;
    double best_cost = kDoesNotFit;
    for (const Cut& c : cuts) {
      LocalSearch& local = *c.local;
      Bytes target = limits_.memory;
      int placed = 0;
      for (int round = 0; round < kMostRounds; ++round) {
        local.relax();
        if (!local.fits()) break;
        local.improve(budget_for(*c.problem) / (round + 1), options_.seed);
        const double cost = local.cost();
        Planned candidate = planned(c, limits_.memory);
        const Bytes excess = candidate.places.arena_bytes - limits_.memory;
        if (excess <= 0) {
          if (cost < best_cost) {
            best_cost = cost;
            best = std::move(candidate);
          }
          // Another aim may find what this one has missed; not worth it where little is lost.
          if (++placed == 2 || cost < 1.04 * seconds_unlimited_) break;
          target -= target / 32;
        } else {
          // Placement wastes some: the search aims lower by it.
          target -= excess + excess / 8;
        }
        if (target <= 0) break;
        local.set_memory(target);
      }
      evaluations_ += local.evaluations();
    }
    return best;
  }

  Limits tight() const {
    Limits limits = limits_;
    limits.memory = 0;
    return limits;
  }

  Bytes arena_of(const Cut& c) const {
    return c.local->cost() < kDoesNotFit ? planned(c).places.arena_bytes : PlanOptions::kUnlimited;
  }

  // What is had fast: the starting points alone. Never less than the least.
  Cut quick_least() const {
    return least_of([](LocalSearch& local) { local.consider_bases(); }, [](const Cut&) {});
  }

  // Takes `quick` over when nothing smaller is found.
  Cut least_memory(Cut& quick) const {
    Cut searched =
        least_of([](LocalSearch& local) { local.scan(); },
                 [&](const Cut& c) { c.local->improve(budget_for(*c.problem), options_.seed); });
    return arena_of(searched) < arena_of(quick) ? std::move(searched) : std::move(quick);
  }

  // The cut whose arena is the smallest once `improve` has gone over the two that promise most.
  template <typename Look, typename Improve>
  Cut least_of(Look look, Improve improve) const {
    std::vector<Cut> cuts;
    for (const std::vector<int>& chunks :
         ways_to_cut(largest_segment(), {1.0, 0.4, 0.15, 0.05, 0.015})) {
      Cut made{cut(chunks), nullptr};
      made.local = std::make_unique<LocalSearch>(*made.problem, tight(), memory_cost);
      look(*made.local);
      cuts.push_back(std::move(made));
    }
    std::ranges::stable_sort(cuts, {}, [](const Cut& c) { return c.local->cost(); });
    cuts.resize(std::min<std::size_t>(cuts.size(), 2));
    for (const Cut& c : cuts) improve(c);
    return std::move(
        *std::ranges::min_element(cuts, {}, [&](const Cut& c) { return arena_of(c); }));
  }

  std::shared_ptr<const Problem> cut(const std::vector<int>& chunks) const {
    return std::make_shared<const Problem>(
        make_problem(selected_, ops_, segments_, chunks, options_.op_seconds));
  }

  Cut scanned(const std::vector<int>& chunks, const Limits& limits, Cost cost) const {
    Cut made{cut(chunks), nullptr};
    made.local = std::make_unique<LocalSearch>(*made.problem, limits, cost);
    made.local->scan();
    return made;
  }

  int budget_for(const Problem& problem) const {
    // An evaluation walks all operands; the whole search is to stay below two seconds.
    const auto most = static_cast<int>(2e7 / static_cast<double>(problem.operands.size() + 1));
    return std::clamp(most, 20, options_.evaluations);
  }

  std::vector<int> cut_all(int chunks) const {
    std::vector<int> result;
    result.reserve(segments_.size());
    for (const Segment& segment : segments_)
      result.push_back(segment.images == 0 ? 1 : std::min(chunks, segment.most_chunks));
    return result;
  }

  // Bytes of the transients that a segment touches.
  double bytes_of(const Segment& segment) const {
    std::vector<std::uint32_t> tensors;
    for (std::uint32_t position = segment.first; position <= segment.last; ++position) {
      const graph::SelectedOp& op = selected_.ops[ops_[position]];
      tensors.insert(tensors.end(), op.reads.begin(), op.reads.end());
      tensors.insert(tensors.end(), op.writes.begin(), op.writes.end());
    }
    std::ranges::sort(tensors);
    const auto rest = std::ranges::unique(tensors);
    tensors.erase(rest.begin(), rest.end());
    double bytes = 0;
    for (const std::uint32_t tensor : tensors) {
      const graph::SelectedTensor& info = selected_.tensors[tensor];
      if (info.images > 0 && !graph::is_persistent(info.role))
        bytes += static_cast<double>(info.bytes);
    }
    return bytes;
  }

  double largest_segment() const {
    double largest = 0;
    for (const Segment& segment : segments_) largest = std::max(largest, bytes_of(segment));
    return largest;
  }

  // From no chunks at all to very small ones: each way cuts the segments whose bytes are above a
  // share of `memory`, no finer than that takes.
  std::vector<std::vector<int>> ways_to_cut(double memory,
                                            std::initializer_list<double> shares) const {
    if (options_.chunks > 0) return {cut_all(options_.chunks)};
    std::vector<std::vector<int>> ways{cut_all(1)};
    for (const double share : shares) {
      std::vector<int> chunks;
      for (const Segment& segment : segments_) {
        int count = 1;
        const double bytes = segment.images == 0 ? 0 : bytes_of(segment);
        while (count < segment.most_chunks && bytes / count > share * memory) count *= 2;
        chunks.push_back(count);
      }
      if (std::ranges::find(ways, chunks) == ways.end()) ways.push_back(std::move(chunks));
    }
    return ways;
  }

  // Placed in no more than `enough` bytes if that is found to go, else in the fewest found.
  static Planned planned(const Cut& c, Bytes enough = 0) {
    const Schedule& schedule = c.local->best();
    return {c.problem, schedule, place(schedule, enough), 0};
  }

  const graph::Selected& selected_;
  std::span<const std::uint32_t> ops_;
  Limits limits_;
  const PlanOptions& options_;
  std::vector<Segment> segments_;
  int evaluations_ = 0;
  double seconds_unlimited_ = 0;
};

}  // namespace

Planned search_fastest(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                       const Limits& limits, const PlanOptions& options) {
  return Search(selected, ops, limits, options).fastest();
}

Planned search_smallest(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                        const Limits& limits, const PlanOptions& options) {
  return Search(selected, ops, limits, options).smallest();
}

Planned plan_unlimited(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                       const Limits& limits, const PlanOptions& options) {
  return Search(selected, ops, limits, options).unlimited();
}

Planned schedule_unlimited(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                           const Limits& limits, const PlanOptions& options) {
  return Search(selected, ops, limits, options).kept();
}

}  // namespace lantern::plan
