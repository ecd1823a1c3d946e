#include "plan/timeline.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lantern::plan
