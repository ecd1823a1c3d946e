#pragma once

#include <cstdint>
#include <vector>

#include "core/rng.hpp"
#include "plan/candidates.hpp"
#include "plan/schedule.hpp"

namespace lantern::plan {

/// Measures of cost, the smaller the better; kDoesNotFit and more: not within the limits.
using Cost = double (*)(const Schedule&);
inline constexpr double kDoesNotFit = 1e15;
/// Seconds, and a little for bytes moved and written to a disk.
double time_cost(const Schedule& schedule);
/// The peak of live bytes, where the tiers hold what is evicted.
double memory_cost(const Schedule& schedule);

/// The search for the best choices for one way of cutting a program, by one measure of cost.
class LocalSearch {
 public:
  LocalSearch(const Problem& problem, const Limits& limits, Cost measure);

  double consider(const Choices& choices);
  void consider_bases();
  /// All starting points, and of each the part that can be kept after all.
  void scan();
  /// From the choices that need the least memory, tensor by tensor what costs less and still fits:
  /// the last made first. About so many evaluations at most, by taking neighbours together.
  void relax(int evaluations);
  /// Flips single pieces, a few, or all of a tensor; now and then accepts a small loss.
  void improve(int evaluations, std::uint64_t seed);

  bool fits() const { return best_cost_ < kDoesNotFit; }
  double cost() const { return best_cost_; }
  int evaluations() const { return evaluations_; }
  const Schedule& best() { return scheduler_.run(best_); }
  const Choices& choices() const { return best_; }
  void set_memory(Bytes memory);

 private:
  double evaluate(const Choices& choices);
  bool moves() const;
  Choice random_choice(const Piece& piece, Rng& rng) const;
  void keep_shares(const Choices& base);
  std::uint32_t pick(Rng& rng) const;
  void keep_from_the_end(const Choices& base);

  Scheduler scheduler_;
  Cost measure_;
  std::vector<std::uint32_t> pieces_;  // worth evicting, in the order in which they are made
  std::vector<bool> is_evictable_;
  Choices least_;  // of all that were looked at, what needs the least memory
  double least_peak_ = 1e31;
  Choices best_;
  double best_cost_ = 1e31;
  int evaluations_ = 0;
};

}  // namespace lantern::plan
