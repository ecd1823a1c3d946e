// The planner on random programs within several budgets, on links and disks: the checker takes
// every plan, and the interpreter, which knows no rules, finds the values of the plain plan.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "plan/checker.hpp"
#include "plan/interpreter.hpp"
#include "plan/naive_planner.hpp"
#include "plan/planner.hpp"
#include "plan/random_program.hpp"

namespace lantern::plan {
namespace {

using Counts = std::map<std::string, int>;

void count(const Program& program, Counts& met) {
  ++met["plans"];
  for (const InstructionList& list : program.programs) {
    for (const Copy& copy : list.outs)
      ++met[program.slots[copy.slot].tier == Tier::kFile ? "copies to the file"
                                                         : "copies to host memory"];
    for (const plan::Run& run : list.runs) met["runs again"] += run.again ? 1 : 0;
  }
  for (std::uint32_t i = 0; i < program.buffers.size(); ++i) {
    const std::uint32_t of = program.buffers[i].alias_of;
    met["in place"] += of != kNone && of != i ? 1 : 0;
  }
}

// RAM only, with host memory, with so little of it that the disk takes the rest.
PlanOptions options_for(std::uint32_t number) {
  const LinkSpec link{.out_bytes_per_second = 1e9, .in_bytes_per_second = 1e9};
  PlanOptions options{.evaluations = 60};
  if (number % 3 == 0) return options;
  options.host = link;
  options.host_memory = 1_GiB;
  if (number % 3 == 1) return options;
  options.host_memory = 4'000;
  options.disk = link;
  options.disk_memory = 1_GiB;
  return options;
}

void try_budget(const graph::Selected& selected, const std::vector<std::uint64_t>& values,
                const PlanOptions& options, const std::string& what, Counts& met) {
  const Program program = make_program(selected, options);
  count(program, met);
  EXPECT_EQ(find_fault(selected, program), std::nullopt) << what;
  EXPECT_TRUE(test::gives(selected, program, values)) << what;
  EXPECT_LE(program.arena_bytes, options.memory) << what;
  EXPECT_LE(program.host_bytes, options.host_memory) << what;
  EXPECT_LE(program.file_bytes, options.disk_memory) << what;
}

TEST(Stress, PlansOfRandomProgramsHoldWithinEveryBudget) {
  Counts met;
  for (std::uint32_t n = 0; n <= 250; ++n) {
    Rng rng(11, "stress", 0, n);
    const graph::Selected selected = test::random_program(rng);
    const Program plain = test::naive_program(
        selected, rng,
        {.chunks = false, .evict = false, .recompute = false, .in_place = false, .pack = false});
    const std::vector<std::uint64_t> values = test::interpret(selected, plain, {}).value();
    PlanOptions options = options_for(n);
    const Bytes least = smallest_memory(selected, options);
    for (const int tenths : {0, 1, 2, 5}) {
      options.memory = least + least / 10 * tenths;
      try_budget(selected, values, options, fmt::format("{}, least + {} tenths", n, tenths), met);
    }
    options = options_for(n);
    options.chunks = 4;
    try_budget(selected, values, options, fmt::format("{}, in 4 chunks", n), met);
    options.chunks = 0;
    options.keep_everything = true;
    try_budget(selected, values, options, fmt::format("{}, everything kept", n), met);
  }
  for (const auto& [what, times] : met) {
    fmt::print("{}: {}\n", what, times);
    EXPECT_GT(times, 100) << what;
  }
  EXPECT_EQ(met.size(), 5U);
}

}  // namespace
}  // namespace lantern::plan
