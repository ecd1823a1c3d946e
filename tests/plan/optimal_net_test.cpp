// The table of memory.md 3.8: yolov3-tiny at 416 with mini-batch 64 on links of 12, 4 and 2 GB/s.
// (Less is saved than in the simulation that made the table, so the budgets are smaller.) All 3^9
// ways to keep, offload or recompute its nine largest tensors that can wait, each with the others
// kept, recomputed or offloaded.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "layers/lower.hpp"
#include "layers/network.hpp"
#include "ops/select.hpp"
#include "plan/cost.hpp"
#include "plan/exhaustive.hpp"
#include "plan/stock_plans.hpp"

namespace lantern::plan {
namespace {

TEST(OptimalNet, Yolov3TinyIsAtMostOnePercentSlowerThanItsNeighbours) {
  const layers::Network network =
      layers::load_network_file(LANTERN_TEST_DATA "/cfg/yolov3-tiny.cfg");
  const layers::Lowered lowered =
      layers::lower(network, {.training = true, .mini_batch = 64, .forward_batch = 0});
  graph::Selected selected = ops::select(lowered.graph, {.threads = 1, .block = 16}).selected;
  const DeviceSpec device = test::stock_device();
  set_costs(selected, device);
  PlanOptions options{.host_memory = 64_GiB,
                      .contention = device.contention,
                      .op_seconds = device.op_seconds,
                      .evaluations = 3000};
  const Problem problem = test::whole_problem(selected, options);
  std::vector<std::uint32_t> others = evictable_pieces(problem);
  std::ranges::stable_sort(others, std::greater{},
                           [&](std::uint32_t piece) { return problem.pieces[piece].bytes; });
  ASSERT_GT(others.size(), 9U);
  const std::vector<std::uint32_t> free(others.begin(), others.begin() + 9);
  others.erase(others.begin(), others.begin() + 9);
  std::vector<Choices> rest(3, Choices(problem.pieces.size(), Choice::kKeep));
  for (const std::uint32_t piece : others) {
    if (problem.pieces[piece].can_recompute) rest[1][piece] = Choice::kRecompute;
    rest[2][piece] = Choice::kOffload;
  }
  fmt::print("link GB/s  budget GB  planner  best of the neighbours  tried\n");
  for (const double link : {12.0, 4.0, 2.0}) {
    for (const double budget : {2.0, 1.6}) {
      options.host = {link * 1e9, link * 1e9, 1e-5};
      options.memory = static_cast<Bytes>(budget * 1e9);
      const auto best = test::search_exhaustively(selected, problem, options, free, rest);
      const Program program = make_program(selected, options);
      const double unlimited = program.prediction.seconds_unlimited;
      const double slow = program.prediction.seconds / unlimited - 1;
      fmt::print("{:9.1f}  {:9.1f}  {:6.2f} %  ", link, budget, 100 * slow);
      if (!best) {
        fmt::print("none fits\n");
        continue;
      }
      fmt::print("{:6.2f} %  {}\n", 100 * (best->seconds / unlimited - 1), best->tried);
      EXPECT_LE(program.prediction.seconds, 1.01 * best->seconds) << link << " " << budget;
    }
  }
}

}  // namespace
}  // namespace lantern::plan
