#include "plan/timeline.hpp"

#include <gtest/gtest.h>

#include "plan/planner.hpp"
#include "plan/timeline_program.hpp"

namespace lantern::plan {
namespace {

using graph::ProgramKind;
using test::CopyingProgram;

// 8000 bytes take 1.5 s out and 5 s in unless a test says otherwise.
DeviceSpec device() { return {.host = {8000 / 1.25, 8000 / 4.75, 0.25}}; }

Timeline replayed(const CopyingProgram& copying, const DeviceSpec& device) {
  return replay(copying.selected, copying.program, ProgramKind::kMiniBatch, device);
}

TEST(Timeline, CopiesRunBesideAndAreWaitedFor) {
  const Timeline time = replayed({}, device());
  EXPECT_DOUBLE_EQ(time.runs[0].end, 1);
  EXPECT_DOUBLE_EQ(time.outs[0].start, 1);
  EXPECT_DOUBLE_EQ(time.outs[0].end, 2.5);
  EXPECT_DOUBLE_EQ(time.runs[1].end, 3) << "the copy out was done before";
  EXPECT_DOUBLE_EQ(time.ins[0].start, 3);
  EXPECT_DOUBLE_EQ(time.ins[0].end, 8);
  EXPECT_DOUBLE_EQ(time.runs[2].end, 7);
  EXPECT_DOUBLE_EQ(time.runs[3].start, 8) << "the copy in was waited for";
  EXPECT_DOUBLE_EQ(time.waiting, 1);
  EXPECT_DOUBLE_EQ(time.seconds, 16);
  EXPECT_DOUBLE_EQ(time.slowed, 0);
  EXPECT_DOUBLE_EQ(time.reached.back(), 16);
}

TEST(Timeline, RunsBesideCopiesAreSlower) {
  DeviceSpec slow = device();
  slow.contention = 1.5;
  const Timeline time = replayed({}, slow);
  EXPECT_DOUBLE_EQ(time.runs[1].end, 1 + 2 * 1.5);
  EXPECT_DOUBLE_EQ(time.runs[2].end, 4 + 4 * 1.5);
  EXPECT_DOUBLE_EQ(time.slowed, 1 + 2);
  EXPECT_DOUBLE_EQ(time.runs[3].length(), 8) << "no copy is under way";
}

TEST(Timeline, EveryRunAndCopyIsStarted) {
  DeviceSpec starting = device();
  starting.op_seconds = 0.125;
  starting.host.latency_seconds = 0;
  const Timeline time = replayed({}, starting);
  EXPECT_DOUBLE_EQ(time.runs[0].end, 1.125);
  EXPECT_DOUBLE_EQ(time.outs[0].length(), 1.25);
}

TEST(Timeline, CopiesOfADirectionFollowOneAnother) {
  CopyingProgram copying;
  copying.program.slots.push_back({.tier = Tier::kFile, .offset = 0, .bytes = 8000});
  InstructionList& list = copying.program.of(ProgramKind::kMiniBatch);
  list.outs.push_back({.buffer = 2, .slot = 1});
  list.instructions.insert(list.instructions.begin() + 3, {Instruction::Kind::kOut, 1});
  DeviceSpec both = device();
  both.disk = {8000, 8000, 0};
  const Timeline time = replayed(copying, both);
  EXPECT_DOUBLE_EQ(time.outs[1].start, 2.5);
  EXPECT_DOUBLE_EQ(time.outs[1].end, 3.5) << "over the link of its own tier";
}

TEST(Timeline, PartsOfAnOpTakePartsOfItsTime) {
  CopyingProgram copying;
  InstructionList& list = copying.program.of(ProgramKind::kMiniBatch);
  list.runs[0].images = 2;
  list.runs[0].again = true;
  const Timeline time = replayed(copying, device());
  EXPECT_DOUBLE_EQ(time.runs[0].end, 0.25);
  EXPECT_DOUBLE_EQ(time.recomputing, 0.25);
}

TEST(Timeline, APendingCopyCountsToTheEnd) {
  CopyingProgram copying;
  InstructionList& list = copying.program.of(ProgramKind::kMiniBatch);
  list.instructions.resize(3);
  EXPECT_DOUBLE_EQ(replayed(copying, device()).seconds, 2.5);
}

/// Layers that make one another's input, and the way back, which reads all that was made.
graph::Selected training(int layers) {
  using graph::Role;
  graph::Selected selected;
  const auto tensor = [&](const std::string& name, Role role, Bytes image) {
    selected.tensors.push_back(
        {.name = name, .role = role, .bytes = 16 * image, .shape = {16, image / 4}, .images = 16});
    return static_cast<std::uint32_t>(selected.tensors.size() - 1);
  };
  const auto op = [&](std::vector<std::uint32_t> reads, std::uint32_t write, double seconds) {
    selected.ops.push_back({.op = "step",
                            .label = selected.tensors[write].name,
                            .program = graph::ProgramKind::kMiniBatch,
                            .reads = std::move(reads),
                            .writes = {write},
                            .accumulates = {false},
                            .images = 16,
                            .seconds = seconds});
  };
  std::vector<std::uint32_t> made{tensor("images", Role::kInput, 4096)};
  for (int i = 0; i < layers; ++i) {
    const std::uint32_t next =
        tensor("x" + std::to_string(i), Role::kActivation, 4096 * (1 + i % 3));
    op({made.back()}, next, 1e-3 * (1 + i % 4));
    made.push_back(next);
  }
  std::uint32_t gradient = made.back();
  for (int i = layers - 1; i > 0; --i) {
    const std::uint32_t next =
        tensor("d" + std::to_string(i), Role::kGradient,
               selected.tensors[made[static_cast<std::size_t>(i)]].bytes / 16);
    op({gradient, made[static_cast<std::size_t>(i)]}, next, 2e-3 * (1 + i % 4));
    gradient = next;
  }
  return selected;
}

TEST(Timeline, AgreesWithWhatThePlannerPredicts) {
  const graph::Selected selected = training(24);
  int copied = 0;
  int recomputed = 0;
  for (const double bandwidth : {2e5, 2e7, 2e8}) {
    const DeviceSpec machine{
        .op_seconds = 1e-5, .host = {bandwidth, bandwidth, 1e-5}, .contention = 1.1};
    PlanOptions options{.host_memory = 1_GiB,
                        .host = machine.host,
                        .contention = machine.contention,
                        .op_seconds = machine.op_seconds,
                        .evaluations = 300};
    const Bytes all = make_program(selected, options).arena_bytes;
    const Bytes least = smallest_memory(selected, options);
    ASSERT_LT(least, all);
    for (int part = 0; part < 4; ++part) {
      options.memory = least + (all - least) * part / 4;
      const Program program = make_program(selected, options);
      const Timeline time = replay(selected, program, ProgramKind::kMiniBatch, machine);
      EXPECT_NEAR(time.seconds, program.prediction.seconds, 1e-9 * time.seconds)
          << bandwidth << " " << part;
      EXPECT_NEAR(time.recomputing, program.prediction.recompute_seconds, 1e-9);
      copied += program.prediction.bytes_out > 0 ? 1 : 0;
      recomputed += time.recomputing > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(copied, 2) << "the plans were to copy";
  EXPECT_GT(recomputed, 0) << "and to compute again";
}

}  // namespace
}  // namespace lantern::plan
