// The checker is checked: valid plans are accepted and do what the plain plan does; plans broken on
// purpose are refused, or an interpreter that knows no rules shows that they do no harm.

#include "plan/checker.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/error.hpp"
#include "plan/interpreter.hpp"
#include "plan/mutants.hpp"
#include "plan/naive_planner.hpp"
#include "plan/planner.hpp"
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
    for (const Buffer& buffer : program.buffers)
      seen["in place"] += buffer.alias_of != kNone ? 1 : 0;
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

/// Every mutant was refused or shown to be harmless, but for one in a hundred.
void expect_killed(const std::map<std::string, Tally>& tallies) {
  Tally all;
  for (const auto& [operation, tally] : tallies) {
    fmt::print("{:46} made {:6} killed {:6} harmless {:5} missed {}\n", operation, tally.made,
               tally.killed, tally.harmless, tally.missed());
    all.made += tally.made;
    all.killed += tally.killed;
    all.harmless += tally.harmless;
  }
  fmt::print("{:46} made {:6} killed {:6} harmless {:5} missed {}\n", "all", all.made, all.killed,
             all.harmless, all.missed());
  EXPECT_GE(all.killed, 0.99 * (all.made - all.harmless));
}

TEST(Checker, KillsMutantsOfNaivePlans) {
  std::map<std::string, Tally> tallies;
  for (std::uint32_t n = 0; n < 25; ++n) {
    Rng rng(8, "mutants", 0, n);
    const Selected selected = test::random_program(rng);
    const std::vector<std::uint64_t> values = plain_values(selected, rng);
    const Program program = test::naive_program(selected, rng, {.pack = n % 4 != 0});
    ASSERT_EQ(find_fault(selected, program), std::nullopt) << n;
    judge(selected, values, test::make_mutants(selected, program, rng), tallies);
  }
  expect_killed(tallies);
  for (const auto& [operation, tally] : tallies) {
    // A second wait for what was waited for is no fault.
    EXPECT_TRUE(tally.killed > 10 || operation.starts_with("duplicate wait")) << operation;
  }
}

TEST(Checker, KillsMutantsOfThePlanner) {
  std::map<std::string, Tally> tallies;
  const LinkSpec link{.out_bytes_per_second = 1e9, .in_bytes_per_second = 1e9};
  std::size_t copies = 0, again = 0;
  for (std::uint32_t n = 0; n < 12; ++n) {
    Rng rng(9, "planner mutants", 0, n);
    const Selected selected = test::random_program(rng);
    const std::vector<std::uint64_t> values = plain_values(selected, rng);
    PlanOptions options{.host_memory = 1_GiB, .host = link, .evaluations = 100};
    if (n % 2 == 1) {
      options.host_memory = 0;
      options.disk_memory = 1_GiB;
      options.disk = link;
    }
    options.memory = smallest_memory(selected, options);
    const Program program = make_program(selected, options);
    ASSERT_EQ(find_fault(selected, program), std::nullopt) << n;
    EXPECT_TRUE(test::gives(selected, program, values)) << n;
    for (const InstructionList& list : program.programs) {
      copies += list.ins.size();
      for (const plan::Run& run : list.runs) again += run.again ? 1 : 0;
    }
    judge(selected, values, test::make_mutants(selected, program, rng), tallies);
  }
  expect_killed(tallies);
  EXPECT_GT(copies, 10U);
  fmt::print("{} copies in, {} recomputations\n", copies, again);
}

// ---- rules that values do not show ----

/// images -> a -> b -> output, by hand: a goes to the file and comes back before b is made.
struct ByHand {
  static constexpr std::int64_t kImages = 4;
  test::SelectedBuilder builder;
  std::uint32_t images = builder.tensor("images", graph::Role::kInput, 4096, kImages);
  std::uint32_t output = builder.tensor("output", graph::Role::kOutput, 4096, kImages);
  std::uint32_t a = builder.tensor("a", graph::Role::kActivation, 4096 + 1024, kImages);
  Selected selected;
  Program program;

  ByHand() {
    using Kind = Instruction::Kind;
    constexpr auto kForward = graph::ProgramKind::kForward;
    builder.op(kForward, {images}, {a}).images = kImages;
    builder.op(kForward, {a}, {output}).images = kImages;
    selected = builder.build();
    program.buffers = {{.tensor = images, .offset = 0, .bytes = 4096},
                       {.tensor = output, .offset = 4096, .bytes = 4096},
                       {.tensor = a, .offset = 8192, .bytes = 5120},
                       {.tensor = a, .offset = 8192, .bytes = 5120}};
    program.persistent = {0, 1, kNone};
    program.persistent_bytes = 8192;
    program.arena_bytes = 16384;
    program.live_peak_bytes = 8192 + 5120;
    program.slots = {{.tier = Tier::kFile, .offset = 0, .bytes = 8192}};
    program.file_bytes = 8192;
    InstructionList& list = program.of(kForward);
    list.operands = {{0, 0}, {2, 0}, {3, 0}, {1, 0}};
    list.runs = {{.op = 0, .images = kImages, .first_operand = 0},
                 {.op = 1, .images = kImages, .first_operand = 2}};
    list.outs = {{2, 0}};
    list.ins = {{3, 0}};
    list.instructions = {{Kind::kAlloc, 2}, {Kind::kRun, 0},   {Kind::kOut, 0}, {Kind::kWaitOut, 1},
                         {Kind::kFree, 2},  {Kind::kAlloc, 3}, {Kind::kIn, 0},  {Kind::kWaitIn, 1},
                         {Kind::kRun, 1},   {Kind::kFree, 3}};
  }

  /// The plan holds before the change, and not after.
  template <typename Change>
  void expect_fault(const std::string& part, Change change) const {
    ASSERT_EQ(find_fault(selected, program), std::nullopt);
    Program changed = program;
    change(changed, changed.of(graph::ProgramKind::kForward));
    const std::optional<std::string> fault = find_fault(selected, changed);
    ASSERT_TRUE(fault) << part;
    EXPECT_NE(fault->find(part), std::string::npos) << *fault;
    EXPECT_THROW(check(selected, changed), Error);
  }
};

TEST(CheckerFault, PagesOfTheFile) {
  const ByHand hand;
  hand.expect_fault("not aligned", [](Program& p, InstructionList&) {
    p.buffers[2].offset = p.buffers[3].offset = 8192 + 256;
    p.arena_bytes = 32768;
  });
  hand.expect_fault("outside the arena",
                    [](Program& p, InstructionList&) { p.arena_bytes = 8192 + 5120; });
  hand.expect_fault("too small", [](Program& p, InstructionList&) { p.slots[0].bytes = 5120; });
  hand.expect_fault("outside its tier", [](Program& p, InstructionList&) { p.file_bytes = 4096; });
  hand.expect_fault("not aligned", [](Program& p, InstructionList&) {
    p.slots[0].offset = 256;
    p.file_bytes = 16384;
  });
}

TEST(CheckerFault, CopiesUnderWay) {
  const ByHand hand;
  hand.expect_fault("freed while it is copied out", [](Program&, InstructionList& list) {
    std::swap(list.instructions[3], list.instructions[4]);
  });
  hand.expect_fault("before its copy out was waited for", [](Program& p, InstructionList& list) {
    p.buffers[3].offset = 16384;
    p.arena_bytes = 32768;
    std::rotate(list.instructions.begin() + 3, list.instructions.begin() + 5,
                list.instructions.begin() + 7);
  });
  hand.expect_fault("while it is copied in", [](Program&, InstructionList& list) {
    std::swap(list.instructions[7], list.instructions[8]);
  });
  hand.expect_fault("is not complete", [](Program&, InstructionList& list) {
    std::swap(list.instructions[1], list.instructions[2]);
  });
  hand.expect_fault("never freed",
                    [](Program&, InstructionList& list) { list.instructions.pop_back(); });
}

TEST(CheckerFault, RangesAndPeaks) {
  const ByHand hand;
  hand.expect_fault("never runs on image 3", [](Program& p, InstructionList& list) {
    p.buffers[2].images = p.buffers[3].images = list.runs[0].images = list.runs[1].images = 3;
    p.buffers[2].bytes = p.buffers[3].bytes = 3840;
    p.live_peak_bytes = 8192 + 3840;
  });
  hand.expect_fault("live peak", [](Program& p, InstructionList&) { ++p.live_peak_bytes; });
  hand.expect_fault("skips", [](Program&, InstructionList& list) { list.operands[0].skip = 1024; });
  ByHand grouped;
  grouped.selected.ops[0].image_group = 3;
  grouped.expect_fault("cuts a group of 3",
                       [](Program&, InstructionList& list) { list.runs[0].images = 2; });
}

TEST(Checker, IsFast) {
  Rng rng(10, "large");
  const Selected selected = test::random_program(rng, 64, 300);
  const Program program = test::naive_program(selected, rng, {.pack = false});
  std::size_t runs = 0;
  for (const InstructionList& list : program.programs) runs += list.runs.size();
  EXPECT_GT(runs, 15000U);
  double best = 1;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(find_fault(selected, program), std::nullopt);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  fmt::print("{} runs checked in {:.1f} ms\n", runs, best * 1e3);
  EXPECT_LT(best, 0.05);
}

}  // namespace
}  // namespace lantern::plan
