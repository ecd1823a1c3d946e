#pragma once

#include <memory>
#include <optional>

#include "plan/emit.hpp"
#include "plan/planner.hpp"
#include "plan/schedule.hpp"

namespace lantern::plan {

/// One program planned: how it is cut, what is done with every piece, and where it all lies.
struct Planned {
  std::shared_ptr<const Problem> problem;
  Schedule schedule;
  SchedulePlaces places;
  int evaluations = 0;
};

/// The way to run one program fastest within the limits (memory.md 3.2): everything kept when that
/// fits; else the best of a scan over cuts into chunks, prices of the link and fractions kept, made
/// better by a local search with a fixed seed. Where nothing fits, the way that needs the least
/// memory, whose arena is larger than the limit then.
Planned search_fastest(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                       const Limits& limits, const PlanOptions& options);

/// The way to run a program in the least memory that the planner knows of.
Planned search_smallest(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                        const Limits& limits, const PlanOptions& options);

/// Everything kept, one run for every op.
Planned plan_unlimited(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                       const Limits& limits, const PlanOptions& options);

/// The same without places, which take long to find.
Planned schedule_unlimited(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                           const Limits& limits, const PlanOptions& options);

}  // namespace lantern::plan
