#pragma once

#include "plan/schedule.hpp"

namespace lantern::plan {

/// Where everything of a schedule lies.
struct SchedulePlaces {
  std::vector<Bytes> blocks;  ///< offset of every block, from the end of the persistent part
  Bytes arena_bytes = 0;      ///< of the transients
  std::vector<Bytes> slots;
  Bytes host_bytes = 0, file_bytes = 0;
};
/// Looks no further once the arena takes `enough` bytes at most.
SchedulePlaces place(const Schedule& schedule, Bytes enough = 0);

/// Appends the buffers and slots of a schedule to a program and writes the instructions of `kind`.
/// Transients begin at `base`.
void emit(const Problem& problem, const Schedule& schedule, const SchedulePlaces& places,
          graph::ProgramKind kind, Bytes base, Program& program);

}  // namespace lantern::plan
