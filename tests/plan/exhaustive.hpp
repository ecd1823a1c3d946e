#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/planner.hpp"

namespace lantern::plan::test {

/// Everything that the planner decides about one program, in one place to be tried.
struct Exhaustive {
  double seconds = 0;  ///< of the fastest schedule that fits, also when it is placed
  int tried = 0;
};

/// The mini-batch program of `selected`, uncut.
Problem whole_problem(const graph::Selected& selected, const PlanOptions& options);

/// Tries keep, offload and recompute for every piece of `free` in all combinations, the others as
/// in `rest`; schedules are made, timed and placed by the planner's own code. Nothing when none
/// fits.
std::optional<Exhaustive> search_exhaustively(const graph::Selected& selected,
                                              const Problem& problem, const PlanOptions& options,
                                              const std::vector<std::uint32_t>& free,
                                              const std::vector<Choices>& rest);

}  // namespace lantern::plan::test
