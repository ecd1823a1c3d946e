#include "plan/local_search.hpp"

#include <algorithm>
#include <ranges>
#include <span>

namespace lantern::plan {

// A schedule that does not fit is worse than any that does, and the worse the more it lacks.
double time_cost(const Schedule& schedule) {
  if (!schedule.possible) return 1e30;
  const Bytes lacking = schedule.overflow + schedule.tier_overflow;
  if (lacking > 0) return kDoesNotFit + static_cast<double>(lacking);
  // At equal time the one that moves less; writing to a disk wears it out.
  Bytes written = 0;
  for (const SlotLife& slot : schedule.slots) written += slot.tier == Tier::kFile ? slot.bytes : 0;
  return schedule.seconds + 1e-13 * static_cast<double>(schedule.bytes_out + schedule.bytes_in) +
         1e-12 * static_cast<double>(written);
}

double memory_cost(const Schedule& schedule) {
  if (!schedule.possible) return 1e30;
  if (schedule.tier_overflow > 0) return 1e18 + static_cast<double>(schedule.tier_overflow);
  return static_cast<double>(schedule.peak) + schedule.seconds * 1e-3;
}

LocalSearch::LocalSearch(const Problem& problem, const Limits& limits, Cost measure)
    : scheduler_(problem, limits),
      measure_(measure),
      pieces_(evictable_pieces(problem)),
      is_evictable_(problem.pieces.size(), false) {
  for (const std::uint32_t piece : pieces_) is_evictable_[piece] = true;
}

double LocalSearch::consider(const Choices& choices) {
  const double cost = evaluate(choices);
  if (cost < best_cost_) {
    best_cost_ = cost;
    best_ = choices;
  }
  return cost;
}

void LocalSearch::consider_bases() {
  const Problem& problem = scheduler_.problem();
  consider(Choices(problem.pieces.size(), Choice::kKeep));
  for (const Choices& base : base_choices(problem, scheduler_.limits(), pieces_)) consider(base);
}

void LocalSearch::scan() {
  const Problem& problem = scheduler_.problem();
  consider(Choices(problem.pieces.size(), Choice::kKeep));
  for (const Choices& base : base_choices(problem, scheduler_.limits(), pieces_)) {
    const double cost = consider(base);
    if (measure_ == time_cost && cost < kDoesNotFit) keep_from_the_end(base);
    if (measure_ == memory_cost) keep_shares(base);
  }
}

void LocalSearch::relax(int evaluations) {
  Choices choices = least_;
  double cost = evaluate(choices);
  if (cost >= kDoesNotFit) return;
  const Problem& problem = scheduler_.problem();
  std::vector<std::uint32_t> tensors;
  for (const std::uint32_t piece : pieces_ | std::views::reverse) {
    const std::uint32_t tensor = problem.pieces[piece].tensor;
    if (std::ranges::find(tensors, tensor) == tensors.end()) tensors.push_back(tensor);
  }
  // Where each evaluation takes long, neighbours are changed together.
  const std::size_t passes = moves() ? 3 : 2;
  const std::size_t together =
      1 + passes * tensors.size() / static_cast<std::size_t>(std::max(1, evaluations));
  for (const Choice choice : {Choice::kKeep, Choice::kOffload, Choice::kRecompute}) {
    if (choice == Choice::kOffload && !moves()) continue;
    for (std::size_t first = 0; first < tensors.size(); first += together) {
      const auto bundle =
          std::span(tensors).subspan(first, std::min(together, tensors.size() - first));
      Choices changed = choices;
      for (const std::uint32_t p : pieces_) {
        if (std::ranges::find(bundle, problem.pieces[p].tensor) != bundle.end() &&
            choices[p] != Choice::kKeep &&
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

void LocalSearch::improve(int evaluations, std::uint64_t seed) {
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
        if (scheduler_.problem().pieces[other].tensor == scheduler_.problem().pieces[piece].tensor)
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
      for (const auto& [piece, choice] : undo | std::views::reverse) current[piece] = choice;
    }
  }
}

void LocalSearch::set_memory(Bytes memory) {
  scheduler_.set_memory(memory);
  if (!best_.empty()) best_cost_ = evaluate(best_);
}

double LocalSearch::evaluate(const Choices& choices) {
  ++evaluations_;
  const Schedule& schedule = scheduler_.run(choices);
  if (const double peak = memory_cost(schedule); peak < least_peak_) {
    least_peak_ = peak;
    least_ = choices;
  }
  return measure_(schedule);
}

Choice LocalSearch::random_choice(const Piece& piece, Rng& rng) const {
  for (;;) {
    switch (rng.uniform_int(0, 4)) {
      case 0:
      case 1:
        return Choice::kKeep;
      case 2:
        if (moves()) return Choice::kOffload;
        break;
      case 3:
        if (piece.can_recompute) return rng.coin() ? Choice::kRecompute : Choice::kRecomputeAlways;
        break;
      default:
        if (moves() && rng.uniform() < 0.3F) return Choice::kOffloadAlways;
        break;
    }
  }
}

// Recomputation keeps what it passes: dropping less may need less.
void LocalSearch::keep_shares(const Choices& base) {
  for (int share = 1; share < 4; ++share) {
    Choices choices = base;
    const auto kept = pieces_.size() * static_cast<std::size_t>(share) / 4;
    for (std::size_t i = 0; i < kept; ++i) choices[pieces_[pieces_.size() - 1 - i]] = Choice::kKeep;
    consider(choices);
  }
}

// A piece to decide anew: one that is there at the peak where memory is what is looked for.
std::uint32_t LocalSearch::pick(Rng& rng) const {
  const auto any = [&](std::size_t count) {
    return static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(count) - 1));
  };
  if (measure_ == memory_cost && rng.uniform() < 0.7F) {
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
void LocalSearch::keep_from_the_end(const Choices& base) {
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
    for (std::size_t i = 0; i < kept; ++i) choices[evicted[evicted.size() - 1 - i]] = Choice::kKeep;
    (consider(choices) < kDoesNotFit ? fits : fails) = kept;
  }
}

bool LocalSearch::moves() const {
  return scheduler_.limits().host.exists() || scheduler_.limits().disk.exists();
}

}  // namespace lantern::plan
