#pragma once

#include <algorithm>
#include <string>

#include "cli/plan_budget.hpp"
#include "exec/measure.hpp"
#include "plan/report.hpp"

namespace lantern::cli {

/// The answer for one mini-batch.
struct PlanRow {
  std::int64_t mini_batch = 0;
  std::int64_t subdivisions = 1;  ///< so that they make at least the cfg's batch
  bool fits = false;
  Bytes smallest = 0;         ///< memory (as Budget::memory) that would do; 0 where it fits
  Surroundings around;        ///< on a CPU; 0 else
  Bytes arena_budget = 0;     ///< what is left of the memory for the arena
  double seconds_update = 0;  ///< of the check and update programs
  std::string limited;
  Bytes file_writes = 0;  ///< bytes a mini-batch writes to the file
  graph::Selected selected;
  plan::Program program;
  plan::Timeline timeline;

  double seconds() const { return program.prediction.seconds; }
  double slowdown() const {
    const double base = program.prediction.seconds_unlimited;
    return base > 0 ? seconds() / base - 1 : 0;
  }
  double bound() const {
    const double base = program.prediction.seconds_unlimited;
    return base > 0 ? std::max(0.0, program.prediction.bound / base - 1) : 0;
  }
  double seconds_per_iteration() const {
    return seconds() * static_cast<double>(subdivisions) + seconds_update;
  }
  Bytes process() const { return program.arena_bytes + around.sum(); }
};

/// Plans mini-batches of one network within one budget; keeps measured times.
class RowPlanner {
 public:
  RowPlanner(const layers::Network& network, const Budget& budget, int threads);

  /// kQuick: a shorter search, and no smallest budget where it does not fit.
  enum class Effort : std::uint8_t { kFull, kQuick };
  PlanRow plan(std::int64_t mini_batch, Effort effort = Effort::kFull);
  /// The largest mini-batch that fits and is not slower than the budget allows, to an eighth;
  /// `from` is known to.
  std::int64_t largest(std::int64_t from);
  bool is_good(const PlanRow& row) const;

 private:
  const layers::Network& network_;
  const Budget& budget_;
  int threads_;
  exec::CostMeter meter_;
};

}  // namespace lantern::cli
