#pragma once

#include <optional>
#include <string>

#include "plan/program.hpp"

namespace lantern::plan {

/// Replays the instruction lists and proves: every read finds the tensor that was written there
/// last, live byte ranges never overlap, nothing is read or written outside its life, persistent
/// tensors are never overwritten by transients, everything lies inside the arena, every op of every
/// program runs exactly once, in order. Knows nothing of how the plan was made. Returns the first
/// fault, or nothing.
std::optional<std::string> find_fault(const graph::Selected& selected, const Program& program);

/// Throws an internal Error with the fault; run on every plan.
void check(const graph::Selected& selected, const Program& program);

}  // namespace lantern::plan
