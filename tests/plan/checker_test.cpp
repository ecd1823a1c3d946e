// The checker is checked: valid plans are accepted and do what the plain plan does; plans broken on
// purpose are refused, or an interpreter that knows no rules shows that they do no harm.

#include "plan/checker.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"
#include "plan/interpreter.hpp"
#include "plan/mutants.hpp"
#include "plan/naive_planner.hpp"
#include "plan/random_program.hpp"

namespace lantern::plan {
namespace {

using graph::Selected;
using test::Mutant;

constexpr test::NaiveOptions kPlain{
    .chunks = false, .evict = false, .recompute = false, .in_place = false, .pack = false};

std::vector<std::uint64_t> plain_values(const Selected& selected, Rng& rng) {
  const Program plain = test::naive_program(selected, rng, kPlain);
  EXPECT_EQ(find_fault(selected, plain), std::nullopt);
  return test::interpret(selected, plain, {}).value();
}

TEST(Checker, TakesPlansThatGiveTheValuesOfThePlainPlan) {
  std::map<std::string, std::size_t> seen;
  for (std::uint32_t n = 0; n < 200; ++n) {
    Rng rng(7, "valid", 0, n);
    const Selected selected = test::random_program(rng);
    const std::vector<std::uint64_t> values = plain_values(selected, rng);
    const Program program = test::naive_program(selected, rng, {.pack = rng.coin()});
    ASSERT_EQ(find_fault(selected, program), std::nullopt) << n;
    EXPECT_TRUE(test::gives(selected, program, values)) << n;
    for (const InstructionList& list : program.programs) {
      seen["copies out"] += list.outs.size();
      seen["copies in"] += list.ins.size();
      for (const plan::Run& run : list.runs) {
        seen["again"] += run.again ? 1 : 0;
        seen["on a part"] += run.images > 0 && run.images < selected.ops[run.op].images ? 1 : 0;
      }
    }
    for (const Buffer& buffer : program.buffers) seen["in place"] += buffer.alias_of != kNone ? 1 : 0;
  }
  for (const auto& [what, count] : seen) {
    fmt::print("{}: {}\n", what, count);
    EXPECT_GT(count, 300U) << what;
  }
}

struct Tally {
  int made = 0, killed = 0, harmless = 0;
  int missed() const { return made - killed - harmless; }
};

void judge(const Selected& selected, const std::vector<std::uint64_t>& values,
           const std::vector<Mutant>& mutants, std::map<std::string, Tally>& tallies) {
  for (const Mutant& mutant : mutants) {
    Tally& tally = tallies[mutant.operation];
    ++tally.made;
    if (find_fault(mutant.selected ? *mutant.selected : selected, mutant.program)) {
      ++tally.killed;
    } else if (test::gives(mutant.selected ? *mutant.selected : selected, mutant.program, values)) {
      ++tally.harmless;
    } else if (tally.missed() <= 3) {
      fmt::print("missed: {} {}\n", mutant.operation, mutant.what);
    }
  }
}

TEST(Checker, KillsMutantsOfNaivePlans) {
  std::map<std::string, Tally> tallies;
  for (std::uint32_t n = 0; n < 40; ++n) {
    Rng rng(8, "mutants", 0, n);
    const Selected selected = test::random_program(rng);
    const std::vector<std::uint64_t> values = plain_values(selected, rng);
    const Program program = test::naive_program(selected, rng, {.pack = n % 4 != 0});
    ASSERT_EQ(find_fault(selected, program), std::nullopt) << n;
    judge(selected, values, test::make_mutants(selected, program, rng), tallies);
  }
  Tally all;
  for (const auto& [operation, tally] : tallies) {
    fmt::print("{:34} made {:6} killed {:6} harmless {:5} missed {}\n", operation, tally.made,
               tally.killed, tally.harmless, tally.missed());
    EXPECT_GT(tally.killed, 10) << operation;
    all.made += tally.made;
    all.killed += tally.killed;
    all.harmless += tally.harmless;
  }
  fmt::print("{:34} made {:6} killed {:6} harmless {:5} missed {}\n", "all", all.made, all.killed,
             all.harmless, all.missed());
  EXPECT_GE(all.killed, 0.99 * (all.made - all.harmless));
}

}  // namespace
}  // namespace lantern::plan
