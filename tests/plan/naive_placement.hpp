#pragma once

#include "plan/program.hpp"

namespace lantern::plan::test {

/// The buffer whose bytes a buffer lies in.
std::uint32_t root_of(const Program& program, std::uint32_t buffer);

/// Gives all buffers and slots of a program a place, transients from `base` on; `packed`: those
/// that do not live together may share bytes. Raises the sizes of arena, tiers and peak to what it
/// needs.
void place(const InstructionList& list, Bytes base, bool packed, Program& program);

}  // namespace lantern::plan::test
