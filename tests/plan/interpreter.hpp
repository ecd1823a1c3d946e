#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/program.hpp"

namespace lantern::plan::test {

/// When copies happen between their start and the wait for them.
struct Timing {
  bool outs_late = false;
  bool ins_late = false;
};

/// Executes a plan on cells of memory with ops that are hash functions of what they read, poison in
/// everything that is not alive, and copies at their earliest or latest moment: the programs once
/// each, then the mini-batch and forward once more. Returns the values of all persistent tensors,
/// or nothing where an index or an address lies outside. Judges by values only, knows no rules.
std::optional<std::vector<std::uint64_t>> interpret(const graph::Selected& selected,
                                                    const Program& program, Timing timing);

/// Whether the plan gives these values whatever the speed of the copies.
bool gives(const graph::Selected& selected, const Program& program,
           const std::vector<std::uint64_t>& values);

}  // namespace lantern::plan::test
