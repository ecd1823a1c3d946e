#include "plan/search.hpp"

#include <algorithm>
#include <numeric>

#include "core/rng.hpp"
#include "plan/candidates.hpp"

namespace lantern::plan {

namespace {

constexpr double kDoesNotFit = 1e15;

// A schedule that does not fit is worse than any that does, and the worse the more it lacks.
double cost_of(const Schedule& schedule) {
  if (!schedule.possible) return 1e30;
  const Bytes lacking = schedule.overflow + schedule.tier_overflow;
  if (lacking > 0) return kDoesNotFit + static_cast<double>(lacking);
  // At equal time the one that moves less; writing to a disk wears it out.
  Bytes written = 0;
  for (const SlotLife& slot : schedule.slots) written += slot.tier == Tier::kFile ? slot.bytes : 0;
  return schedule.seconds + 1e-13 * static_cast<double>(schedule.bytes_out + schedule.bytes_in) +
         1e-12 * static_cast<double>(written);
}

double peak_of(const Schedule& schedule) {
  if (!schedule.possible) return 1e30;
  if (schedule.tier_overflow > 0) return 1e18 + static_cast<double>(schedule.tier_overflow);
  return static_cast<double>(schedule.peak) + schedule.seconds * 1e-3;
}

using Cost = double (*)(const Schedule&);

/// The best choices for one cut, under one measure of cost.
class Local {
 public:
  Local(const Problem& problem, const Limits& limits, Cost measure)
      : scheduler_(problem, limits),
        cost_(measure),
        pieces_(evictable_pieces(problem)),
        is_evictable_(problem.pieces.size(), false) {
    for (const std::uint32_t piece : pieces_) is_evictable_[piece] = true;
  }

  double consider(const Choices& choices) {
    const double cost = evaluate(choices);
    if (cost < best_cost_) {
      best_cost_ = cost;
      best_ = choices;
    }
    return cost;
  }

  void consider_bases() {
    const Problem& problem = scheduler_.problem();
    consider(Choices(problem.pieces.size(), Choice::kKeep));
    for (const Choices& base : base_choices(problem, scheduler_.limits(), pieces_)) consider(base);
  }

  void scan() {
    const Problem& problem = scheduler_.problem();
    consider(Choices(problem.pieces.size(), Choice::kKeep));
    for (const Choices& base : base_choices(problem, scheduler_.limits(), pieces_)) {
      const double cost = consider(base);
      if (cost_ == cost_of && cost < kDoesNotFit) keep_from_the_end(base);
      if (cost_ == peak_of) keep_shares(base);
    }
  }

  // From the choices that need the least memory, tensor by tensor what costs less and still fits:
  // the last made first.
  void relax() {
    Choices choices = least_;
    double cost = evaluate(choices);
    if (cost >= kDoesNotFit) return;
    const Problem& problem = scheduler_.problem();
    std::vector<std::uint32_t> tensors;
    for (auto p = pieces_.rbegin(); p != pieces_.rend(); ++p) {
      const std::uint32_t tensor = problem.pieces[*p].tensor;
      if (std::ranges::find(tensors, tensor) == tensors.end()) tensors.push_back(tensor);
    }
    const bool moves = scheduler_.limits().host.exists() || scheduler_.limits().disk.exists();
    for (const Choice choice : {Choice::kKeep, Choice::kOffload, Choice::kRecompute}) {
      if (choice == Choice::kOffload && !moves) continue;
      for (const std::uint32_t tensor : tensors) {
        Choices changed = choices;
        for (const std::uint32_t p : pieces_) {
          if (problem.pieces[p].tensor == tensor && choices[p] != Choice::kKeep &&
              (choice != Choice::kRecompute || problem.pieces[p].can_recompute))
            changed[p] = choice;
        }
        if (changed == choices) continue;
        const double changed_cost = evaluate(changed);
        if (changed_cost >= cost) continue;
        cost = changed_cost;
        choices = std::move(changed);
      }
    }
    if (cost < best_cost_) {
      best_cost_ = cost;
      best_ = std::move(choices);
    }
  }

  // Flips single pieces, a few, or all of a tensor; now and then accepts a small loss.
  void improve(int evaluations, std::uint64_t seed) {
    if (pieces_.empty() || best_.empty()) return;
    Rng rng(seed, "local search");
    Choices current = best_;
    double current_cost = best_cost_;
    std::vector<std::pair<std::uint32_t, Choice>> undo;
    for (int i = 0; i < evaluations; ++i) {
      undo.clear();
      const auto flip = [&](std::uint32_t piece, Choice choice) {
        if (current[piece] == choice) return;
        undo.emplace_back(piece, current[piece]);
        current[piece] = choice;
      };
      const int count = rng.uniform() < 0.6F ? 1 : static_cast<int>(rng.uniform_int(2, 4));
      for (int k = 0; k < count; ++k) {
        const std::uint32_t piece = pick(rng);
        const Choice choice = random_choice(scheduler_.problem().pieces[piece], rng);
        flip(piece, choice);
        if (!rng.coin()) continue;
        for (const std::uint32_t other : pieces_) {
          if (scheduler_.problem().pieces[other].tensor ==
              scheduler_.problem().pieces[piece].tensor)
            flip(other, choice);
        }
      }
      if (undo.empty()) continue;
      const double cost = evaluate(current);
      const double heat = 2e-3 * (1.0 - static_cast<double>(i) / evaluations);
      if (cost < best_cost_) {
        best_cost_ = cost;
        best_ = current;
      }
      if (cost < current_cost * (1 + heat * static_cast<double>(rng.uniform()))) {
        current_cost = cost;
      } else {
        for (auto u = undo.rbegin(); u != undo.rend(); ++u) current[u->first] = u->second;
      }
    }
  }

  bool fits() const { return best_cost_ < kDoesNotFit; }
  double cost() const { return best_cost_; }
  int evaluations() const { return evaluations_; }
  const Schedule& best() { return scheduler_.run(best_); }
  const Choices& choices() const { return best_; }
  Scheduler& scheduler() { return scheduler_; }
  void set_memory(Bytes memory) {
    scheduler_.set_memory(memory);
    if (!best_.empty()) best_cost_ = evaluate(best_);
  }

 private:
  double evaluate(const Choices& choices) {
    ++evaluations_;
    const Schedule& schedule = scheduler_.run(choices);
    if (const double peak = peak_of(schedule); peak < least_peak_) {
      least_peak_ = peak;
      least_ = choices;
    }
    return cost_(schedule);
  }

  Choice random_choice(const Piece& piece, Rng& rng) const {
    const bool moves = scheduler_.limits().host.exists() || scheduler_.limits().disk.exists();
    for (;;) {
      switch (rng.uniform_int(0, 4)) {
        case 0:
        case 1:
          return Choice::kKeep;
        case 2:
          if (moves) return Choice::kOffload;
          break;
        case 3:
          if (piece.can_recompute)
            return rng.coin() ? Choice::kRecompute : Choice::kRecomputeAlways;
          break;
        default:
          if (moves && rng.uniform() < 0.3F) return Choice::kOffloadAlways;
          break;
      }
    }
  }

  // Recomputation keeps what it passes: dropping less may need less.
  void keep_shares(const Choices& base) {
    for (int share = 1; share < 4; ++share) {
      Choices choices = base;
      const auto kept = pieces_.size() * static_cast<std::size_t>(share) / 4;
      for (std::size_t i = 0; i < kept; ++i)
        choices[pieces_[pieces_.size() - 1 - i]] = Choice::kKeep;
      consider(choices);
    }
  }

  // A piece to decide anew: one that is there at the peak where memory is what is looked for.
  std::uint32_t pick(Rng& rng) const {
    const auto any = [&](std::size_t count) {
      return static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(count) - 1));
    };
    if (cost_ == peak_of && rng.uniform() < 0.7F) {
      const Schedule& schedule = scheduler_.last();
      for (int attempt = 0; attempt < 50 && !schedule.stays.empty(); ++attempt) {
        const Stay& stay = schedule.stays[any(schedule.stays.size())];
        if (stay.begin <= schedule.peak_entry && stay.end >= schedule.peak_entry &&
            is_evictable_[stay.piece])
          return stay.piece;
      }
    }
    return pieces_[any(pieces_.size())];
  }

  // The largest part, counted from the last piece made, that can be kept after all: it is needed
  // first, and hardest to bring back in time.
  void keep_from_the_end(const Choices& base) {
    std::vector<std::uint32_t> evicted;
    for (const std::uint32_t piece : pieces_) {
      if (base[piece] != Choice::kKeep) evicted.push_back(piece);
    }
    std::size_t fits = 0;
    std::size_t fails = evicted.size() + 1;
    Choices choices;
    for (int round = 0; round < 8 && fails - fits > 1; ++round) {
      const std::size_t kept = (fits + fails) / 2;
      choices = base;
      for (std::size_t i = 0; i < kept; ++i)
        choices[evicted[evicted.size() - 1 - i]] = Choice::kKeep;
      (consider(choices) < kDoesNotFit ? fits : fails) = kept;
    }
  }

  Scheduler scheduler_;
  Cost cost_;
  std::vector<std::uint32_t> pieces_;  // worth evicting, in the order in which they are made
  std::vector<bool> is_evictable_;
  Choices least_;  // of all that were looked at, what needs the least memory
  double least_peak_ = 1e31;
  Choices best_;
  double best_cost_ = 1e31;
  int evaluations_ = 0;
};

struct Cut {
  std::shared_ptr<const Problem> problem;
  std::unique_ptr<Local> local;
};

class Search {
 public:
  Search(const graph::Selected& selected, std::span<const std::uint32_t> ops, const Limits& limits,
         const PlanOptions& options)
      : selected_(selected),
        ops_(ops),
        limits_(limits),
        options_(options),
        segments_(find_segments(selected, ops)) {}

  Planned unlimited() {
    Limits limits = limits_;
    limits.memory = PlanOptions::kUnlimited;
    const auto problem = cut(cut_all(options_.chunks > 0 ? options_.chunks : 1));
    Scheduler scheduler(*problem, limits);
    return finish(problem, scheduler.run(Choices(problem->pieces.size(), Choice::kKeep)));
  }

  std::optional<Planned> fastest() {
    {
      Planned all = unlimited();
      if (all.places.arena_bytes <= limits_.memory) return all;
    }
    // Where the least memory is near, it decides: what is below it is refused, by whatever luck a
    // search might find something.
    const bool near = limits_.memory < quick_least();
    std::optional<Cut> least;
    if (near) {
      least = least_memory();
      if (finish(least->problem, least->local->best()).places.arena_bytes > limits_.memory)
        return std::nullopt;
    }
    std::vector<Cut> cuts;
    for (const std::vector<int>& chunks :
         ways_to_cut(0.6 * static_cast<double>(limits_.memory), {1.0, 0.4, 0.15, 0.05}))
      cuts.push_back(scanned(chunks, limits_, cost_of));
    std::ranges::stable_sort(cuts, {}, [](const Cut& c) { return c.local->cost(); });
    cuts.resize(std::min<std::size_t>(cuts.size(), 2));
    if (near) cuts.push_back(from_least(*least));
    std::optional<Planned> best = best_of(cuts);
    if (!best) {
      if (!least) least = least_memory();
      Planned planned = finish(least->problem, least->local->best());
      if (planned.places.arena_bytes > limits_.memory) return std::nullopt;
      cuts.clear();
      cuts.push_back(from_least(*least));
      best = best_of(cuts);
      if (!best) best = std::move(planned);
    }
    best->evaluations = evaluations_;
    return best;
  }

  Planned smallest() {
    const Cut least = least_memory();
    return finish(least.problem, least.local->best());
  }

 private:
  // The search for speed goes on from the plan that needs the least.
  Cut from_least(const Cut& least) const {
    Cut made{least.problem, std::make_unique<Local>(*least.problem, limits_, cost_of)};
    made.local->consider(least.local->choices());
    return made;
  }

  std::optional<Planned> best_of(const std::vector<Cut>& cuts) {
    std::optional<Planned> best;
    double best_cost = kDoesNotFit;
    for (const Cut& c : cuts) {
      Local& local = *c.local;
      Bytes target = limits_.memory;
      for (int round = 0; round < 4; ++round) {
        local.relax();
        if (!local.fits()) break;
        local.improve(budget_for(*c.problem) / (round + 1), options_.seed);
        const double cost = local.cost();
        Planned planned = finish(c.problem, local.best());
        const Bytes excess = planned.places.arena_bytes - limits_.memory;
        if (excess <= 0) {
          if (cost < best_cost) {
            best_cost = cost;
            best = std::move(planned);
          }
          break;
        }
        // Placement wastes some: the search aims lower by it.
        target -= excess + excess / 8;
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

  // An upper bound of the least memory that is had fast.
  Bytes quick_least() const {
    Bytes least = PlanOptions::kUnlimited;
    for (const std::vector<int>& chunks :
         ways_to_cut(largest_segment(), {1.0, 0.4, 0.15, 0.05, 0.015})) {
      const auto problem = cut(chunks);
      Local local(*problem, tight(), peak_of);
      local.consider_bases();
      if (local.cost() < kDoesNotFit)
        least = std::min(least, finish(problem, local.best()).places.arena_bytes);
    }
    return least;
  }

  Cut least_memory() const {
    std::vector<Cut> cuts;
    for (const std::vector<int>& chunks :
         ways_to_cut(largest_segment(), {1.0, 0.4, 0.15, 0.05, 0.015}))
      cuts.push_back(scanned(chunks, tight(), peak_of));
    std::ranges::stable_sort(cuts, {}, [](const Cut& c) { return c.local->cost(); });
    std::size_t best = 0;
    for (std::size_t i = 0; i < cuts.size() && i < 2; ++i) {
      cuts[i].local->improve(budget_for(*cuts[i].problem), options_.seed);
      if (cuts[i].local->cost() < cuts[best].local->cost()) best = i;
    }
    return std::move(cuts[best]);
  }

  std::shared_ptr<const Problem> cut(const std::vector<int>& chunks) const {
    return std::make_shared<const Problem>(
        make_problem(selected_, ops_, segments_, chunks, options_.op_seconds));
  }

  Cut scanned(const std::vector<int>& chunks, const Limits& limits, Cost cost) const {
    Cut made{cut(chunks), nullptr};
    made.local = std::make_unique<Local>(*made.problem, limits, cost);
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

  Planned finish(std::shared_ptr<const Problem> problem, const Schedule& schedule) const {
    Planned planned{std::move(problem), schedule, place(schedule), 0};
    return planned;
  }

  const graph::Selected& selected_;
  std::span<const std::uint32_t> ops_;
  Limits limits_;
  const PlanOptions& options_;
  std::vector<Segment> segments_;
  int evaluations_ = 0;
};

}  // namespace

std::optional<Planned> search_fastest(const graph::Selected& selected,
                                      std::span<const std::uint32_t> ops, const Limits& limits,
                                      const PlanOptions& options) {
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

}  // namespace lantern::plan
