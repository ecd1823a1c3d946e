#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "plan/program.hpp"

namespace lantern::plan::test {

/// A plan with one change.
struct Mutant {
  std::string operation;
  std::string what;
  Program program;
  std::optional<graph::Selected> selected;  ///< where the change is in what the plan is for
};

/// Many changes of a plan, of every sort (memory.md, section 7). Most of them break it.
std::vector<Mutant> make_mutants(const graph::Selected& selected, const Program& program, Rng& rng);

}  // namespace lantern::plan::test
