#pragma once

#include "plan/schedule.hpp"

namespace lantern::plan {

/// Seconds below which no schedule can be by the cost model (memory.md 1): the bytes above the
/// memory are either moved, out during forward and in during backward, or computed again.
double fastest_possible(const Problem& problem, const Schedule& unlimited, const Limits& limits);

/// Bytes that must wait from forward to backward when everything is dropped that little more than
/// reading and writing makes again (memory.md, section 2).
Bytes saved_bytes(const Problem& problem);

}  // namespace lantern::plan
