// The planner against exhaustive search (memory.md 3.8): on small graphs every combination of keep,
// offload and recompute is tried through the planner's own evaluation, with placement. That covers
// what an integer program over the same binaries could find, and knows the queues of the link
// exactly where the program would need their order linearised; so there is no solver among the
// tests' dependencies.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.hpp"
#include "plan/checker.hpp"
#include "plan/exhaustive.hpp"
#include "plan/random_program.hpp"

namespace lantern::plan {
namespace {

using graph::ProgramKind;
using graph::Role;

/// Layers with a residual sum now and then, and the way back, which reads most of what was made.
/// Kinds differ as real ones do: some are dear to make and small, some cheap and large.
graph::Selected small_training(Rng& rng) {
  test::SelectedBuilder builder;
  constexpr std::int64_t kImages = 16;
  const auto tensor = [&](const std::string& name, Role role) {
    return builder.tensor(name, role, kImages * 4096 * rng.uniform_int(1, 12), kImages);
  };
  const auto op = [&](std::vector<std::uint32_t> reads, std::uint32_t write) {
    graph::SelectedOp& made = builder.op(ProgramKind::kMiniBatch, std::move(reads), {write});
    made.images = kImages;
    made.seconds = 1e-3 * std::exp(rng.uniform(-3, 1.5F));
  };
  const std::int64_t layers = rng.uniform_int(9, 14);
  std::vector<std::uint32_t> made{builder.tensor("images", Role::kInput, kImages * 4096, kImages)};
  for (std::int64_t i = 0; i < layers; ++i) {
    std::vector<std::uint32_t> reads{made.back()};
    if (made.size() > 3 && rng.uniform() < 0.2F) reads.push_back(made[made.size() - 3]);
    made.push_back(tensor(fmt::format("x{}", i), Role::kActivation));
    op(std::move(reads), made.back());
  }
  std::uint32_t gradient = made.back();
  for (std::size_t i = made.size() - 1; i-- > 1;) {
    const std::uint32_t next = tensor(fmt::format("d{}", i), Role::kGradient);
    std::vector<std::uint32_t> reads{gradient};
    if (rng.uniform() < 0.8F) reads.push_back(made[i]);
    op(std::move(reads), next);
    gradient = next;
  }
  builder.op(ProgramKind::kMiniBatch, {gradient},
             {builder.tensor("result", Role::kOutput, 4096, 0)});
  return builder.build();
}

struct Link {
  const char* name;
  double bytes_per_second;  ///< 0: none
};
// Saved bytes cross the fast one in a fraction of the time of the ops, the slow one takes longer.
constexpr Link kLinks[] = {{"no link", 0}, {"slow", 2e8}, {"medium", 1e9}, {"fast", 5e9}};

/// By how much plans are slower than the best, as parts of it.
class Gaps {
 public:
  void add(double gap) { gaps_.push_back(gap); }
  std::size_t count() const { return gaps_.size(); }
  /// The gap that so large a part of all plans does not exceed.
  double at(double part) {
    std::ranges::sort(gaps_);
    return gaps_[static_cast<std::size_t>(part * static_cast<double>(gaps_.size() - 1))];
  }
  void print(const char* what) {
    fmt::print("{}, {} plans, % above the best:", what, count());
    for (const double part : {0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 1.0})
      fmt::print("  {:.0f} of 100 {:.2f}", 100 * part, 100 * at(part));
    fmt::print("\n");
  }

 private:
  std::vector<double> gaps_;
};

TEST(Optimal, PlansOfSmallGraphsAreAtMostOnePercentSlowerThanTheBest) {
  constexpr std::size_t kMostFree = 9;
  Gaps gaps, uncut;
  int graphs = 0, tried = 0, evicting = 0;
  for (std::uint32_t n = 0; graphs < 60; ++n) {
    Rng rng(12, "optimal", 0, n);
    const graph::Selected selected = small_training(rng);
    const std::vector<std::uint32_t> free = evictable_pieces(test::whole_problem(selected, {}));
    if (free.size() < 3 || free.size() > kMostFree) continue;
    ++graphs;
    for (const Link& link : kLinks) {
      PlanOptions options{
          .contention = rng.coin() ? 1 : 1.1, .op_seconds = 1e-6, .evaluations = 2000, .chunks = 1};
      if (link.bytes_per_second > 0) {
        options.host = {link.bytes_per_second, link.bytes_per_second, 1e-6};
        options.host_memory = 1_GiB;
      }
      const Problem problem = test::whole_problem(selected, options);
      const Bytes all = make_program(selected, options).arena_bytes;
      const Bytes least = smallest_memory(selected, options);
      for (const double part : {0.6, 0.2}) {
        options.memory = least + static_cast<Bytes>(part * static_cast<double>(all - least));
        const auto best = test::search_exhaustively(
            selected, problem, options, free, {Choices(problem.pieces.size(), Choice::kKeep)});
        ASSERT_TRUE(best) << n << " " << link.name << " " << part;
        tried += best->tried;
        options.chunks = 1;
        uncut.add(make_program(selected, options).prediction.seconds / best->seconds - 1);
        options.chunks = 0;
        const Program program = make_program(selected, options);
        ASSERT_EQ(find_fault(selected, program), std::nullopt) << n;
        evicting += program.prediction.seconds > program.prediction.seconds_unlimited ? 1 : 0;
        const double gap = program.prediction.seconds / best->seconds - 1;
        gaps.add(gap);
        EXPECT_LE(gap, 0.01) << "graph " << n << ", " << link.name << ", " << part
                             << " of the budget: " << program.prediction.seconds
                             << " s, the best of " << best->tried << " is " << best->seconds
                             << " s, unlimited " << program.prediction.seconds_unlimited << " s";
      }
    }
  }
  fmt::print("{} graphs, {} schedules tried\n", graphs, tried);
  gaps.print("as planned");
  uncut.print("forbidden to cut");
  EXPECT_GT(gaps.count(), 400U);
  EXPECT_GT(evicting, 100) << "budgets below what costs nothing";
  // Large blocks that nothing may cut leave placement little choice.
  EXPECT_LE(uncut.at(0.9), 0.01);
}

}  // namespace
}  // namespace lantern::plan
