#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/model.hpp"

namespace lantern::test {

/// A network whose weights must come out of training with the same bits whatever memory it is
/// given. The list is one table; what is added to it is held to every plan.
struct BudgetNet {
  std::string name;
  std::string cfg;  ///< a file (below tests/data/cfg), or cfg text when it holds a line break
  int size = 0;     ///< width and height, 0: as the cfg has it
};
std::vector<BudgetNet> budget_nets();

/// LANTERN_FULL is set: the published networks beside those of the repository, the twenty
/// iterations of the goals; otherwise as much as a quick run allows.
bool full_run();

layers::Network load(const BudgetNet& net);

/// A model with data of its own, and its state after some iterations, as bits.
std::vector<float> trained_state(const layers::Network& network, const exec::ModelOptions& options,
                                 int iterations);
/// The same of what compile() with these options has given.
std::vector<float> trained_state(const layers::Network& network, const exec::ModelOptions& options,
                                 exec::Compiled compiled, int iterations);

}  // namespace lantern::test
