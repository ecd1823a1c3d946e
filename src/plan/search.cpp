#include "plan/search.hpp"

#include <algorithm>

#include "plan/local_search.hpp"
#include "plan/side_by_side.hpp"

namespace lantern::plan {

namespace {

// One way to cut, and the search for what to do with its pieces; those of several cuts share
// nothing and run side by side.
struct Cut {
  std::shared_ptr<const Problem> problem;
  std::unique_ptr<LocalSearch> local;
};

// The best way that a cut has to need little memory.
struct Least {
  Cut cut;
  Planned planned;
  Bytes arena() const { return planned.places.arena_bytes; }
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
    Least quick = quick_least();
    std::optional<Least> least;
    if (limits_.memory < quick.arena()) {
      least = least_memory(quick);
      if (least->arena() > limits_.memory) return std::move(least->planned);
    }
    std::vector<Cut> cuts =
        two_best(ways_to_cut(0.6 * static_cast<double>(limits_.memory), {1.0, 0.4, 0.15, 0.05}),
                 limits_, time_cost, [](LocalSearch& local) { local.scan(); });
    if (least) cuts.push_back(from_least(least->cut));
    std::optional<Planned> best = best_of(cuts);
    if (!best) {
      if (!least) least = least_memory(quick);
      if (least->arena() > limits_.memory) return std::move(least->planned);
      cuts.clear();
      cuts.push_back(from_least(least->cut));
      best = best_of(cuts);
      if (!best) best = std::move(least->planned);
    }
    best->evaluations = evaluations_;
    return std::move(*best);
  }

  Planned smallest() {
    Least quick = quick_least();
    return least_memory(quick).planned;
  }

 private:
  // The search for speed goes on from the plan that needs the least.
  Cut from_least(const Cut& least) const {
    Cut made{least.problem, std::make_unique<LocalSearch>(*least.problem, limits_, time_cost)};
    made.local->consider(least.local->choices());
    return made;
  }

  std::optional<Planned> best_of(const std::vector<Cut>& cuts) {
    std::vector<Fastest> found(cuts.size());
    side_by_side(cuts.size(), [&](std::size_t i) { found[i] = fastest_of(cuts[i]); });
    for (const Cut& c : cuts) evaluations_ += c.local->evaluations();
    const auto best = std::ranges::min_element(found, {}, &Fastest::cost);
    return best == found.end() ? std::nullopt : std::move(best->planned);
  }

  struct Fastest {
    std::optional<Planned> planned;
    double cost = kDoesNotFit;
  };

  Fastest fastest_of(const Cut& c) const {
    Fastest best;
    LocalSearch& local = *c.local;
    // Placement wastes some, so the search aims lower than the limit: between what was just too
    // high and what fits.
    const int budget = budget_for(*c.problem);
    Bytes target = limits_.memory;
    Bytes fits = 0;
    Bytes too_high = limits_.memory;
    int searches = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      local.relax(budget / (searches + 1));
      // So low an aim may be out of reach: then the last one is as good as any.
      const bool back = !local.fits() && round > 0 && searches == 0;
      if (back) local.set_memory(target = too_high);
      if (!local.fits()) break;
      Planned candidate = planned(c, limits_.memory);
      // Where much is wasted, an aim is found before much is searched for.
      if (searches > 0 || back || round == 2 || candidate.places.arena_bytes <= limits_.memory) {
        local.improve((round == 0 ? 2 : 1) * budget / ++searches, options_.seed);
        candidate = planned(c, limits_.memory);
      }
      const Bytes arena = candidate.places.arena_bytes;
      if (arena <= limits_.memory) {
        fits = target;
        if (local.cost() < best.cost) best = {std::move(candidate), local.cost()};
        if (target == limits_.memory || best.cost < 1.04 * seconds_unlimited_) break;
      } else {
        too_high = target;
      }
      if (fits > 0 && (searches >= 2 || too_high - fits < limits_.memory / 128)) break;
      const double share = 0.998 * static_cast<double>(limits_.memory) / static_cast<double>(arena);
      target = fits > 0 ? fits + (too_high - fits) / 2
                        : static_cast<Bytes>(share * static_cast<double>(target));
      local.set_memory(target);
    }
    return best;
  }

  Limits tight() const {
    Limits limits = limits_;
    limits.memory = 0;
    return limits;
  }

  // What is had fast: the starting points alone. Never less than the least.
  Least quick_least() const {
    return least_of([](LocalSearch& local) { local.consider_bases(); }, [](const Cut&) {});
  }

  // Takes `quick` over when nothing smaller is found.
  Least least_memory(Least& quick) const {
    Least searched =
        least_of([](LocalSearch& local) { local.scan(); },
                 [&](const Cut& c) { c.local->improve(budget_for(*c.problem), options_.seed); });
    return searched.arena() < quick.arena() ? std::move(searched) : std::move(quick);
  }

  // The cut whose arena is the smallest once `improve` has gone over the two that promise most.
  template <typename Look, typename Improve>
  Least least_of(Look look, Improve improve) const {
    std::vector<Cut> cuts = two_best(ways_to_cut(largest_segment(), {1.0, 0.4, 0.15, 0.05, 0.015}),
                                     tight(), memory_cost, look);
    std::vector<Least> found(cuts.size());
    side_by_side(cuts.size(), [&](std::size_t i) {
      improve(cuts[i]);
      found[i].planned = planned(cuts[i]);
      if (cuts[i].local->cost() >= kDoesNotFit)
        found[i].planned.places.arena_bytes = PlanOptions::kUnlimited;
      found[i].cut = std::move(cuts[i]);
    });
    return std::move(*std::ranges::min_element(found, {}, &Least::arena));
  }

  // The two ways to cut, or the one, that look best after `look`.
  template <typename Look>
  std::vector<Cut> two_best(const std::vector<std::vector<int>>& ways, const Limits& limits,
                            Cost cost, Look look) const {
    std::vector<Cut> cuts(ways.size());
    side_by_side(ways.size(), [&](std::size_t i) {
      cuts[i].problem = cut(ways[i]);
      cuts[i].local = std::make_unique<LocalSearch>(*cuts[i].problem, limits, cost);
      look(*cuts[i].local);
    });
    std::ranges::stable_sort(cuts, {}, [](const Cut& c) { return c.local->cost(); });
    cuts.resize(std::min<std::size_t>(cuts.size(), 2));
    return cuts;
  }

  std::shared_ptr<const Problem> cut(const std::vector<int>& chunks) const {
    return std::make_shared<const Problem>(
        make_problem(selected_, ops_, segments_, chunks, options_.op_seconds));
  }

  int budget_for(const Problem& problem) const {
    // An evaluation walks all operands; the whole search is to stay below two seconds on two cores.
    const auto most = static_cast<int>(1.2e7 / static_cast<double>(problem.operands.size() + 1));
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
