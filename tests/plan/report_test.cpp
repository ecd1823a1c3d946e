#include "plan/report.hpp"

#include <gtest/gtest.h>

#include "plan/timeline_program.hpp"

namespace lantern::plan {
namespace {

using graph::ProgramKind;
using test::CopyingProgram;

constexpr Bytes kTensor = 8 * CopyingProgram::kImage;

Bytes of(const Holding& holding, Use use) { return holding[static_cast<std::size_t>(use)]; }

struct Report {
  CopyingProgram copying;
  Timeline timeline = replay(copying.selected, copying.program, ProgramKind::kMiniBatch,
                             {.host = {8000 / 1.5, 8000 / 5.0, 0}});
  std::vector<Moment> moments =
      memory_over_time(copying.selected, copying.program, ProgramKind::kMiniBatch, timeline);

  Moment when(double seconds) const {
    Moment found = moments.front();
    for (const Moment& moment : moments) {
      if (moment.seconds <= seconds) found = moment;
    }
    return found;
  }
};

TEST(MemoryOverTime, TellsWhatBytesAreThereFor) {
  const Report report;
  for (const Moment& moment : report.moments)
    EXPECT_EQ(of(moment.device, Use::kParameters), kTensor) << moment.seconds;
  EXPECT_EQ(of(report.when(0.5).device, Use::kSaved), kTensor) << "x is read by backward";
  EXPECT_EQ(of(report.when(1.5).device, Use::kSaved), 2 * kTensor) << "and so is y";
  EXPECT_EQ(of(report.when(4).device, Use::kPrefetched), kTensor);
  EXPECT_EQ(of(report.when(4).device, Use::kGradients), kTensor);
  EXPECT_EQ(of(report.when(9).device, Use::kPrefetched), 0) << "in use now";
  EXPECT_EQ(of(report.when(9).device, Use::kSaved), kTensor);
  EXPECT_EQ(of(report.when(9).device, Use::kGradients), kTensor) << "h took the bytes of g";
}

TEST(MemoryOverTime, IsAscendingAndEndsWithWhatStays) {
  const Report report;
  for (std::size_t i = 1; i < report.moments.size(); ++i)
    EXPECT_GE(report.moments[i].seconds, report.moments[i - 1].seconds);
  EXPECT_EQ(sum(report.moments.back().device), kTensor);
  EXPECT_EQ(report.moments.back().host, 0);
}

TEST(MemoryOverTime, SlotsAreFullFromTheCopyOutToTheCopyIn) {
  const Report report;
  EXPECT_EQ(report.when(0.5).host, 0);
  EXPECT_EQ(report.when(1.5).host, kTensor);
  EXPECT_EQ(report.when(7.5).host, kTensor);
  EXPECT_EQ(report.when(8.5).host, 0);
  EXPECT_EQ(report.when(2).file, 0);
}

TEST(Peak, IsTheRunThatNeedsMost) {
  const CopyingProgram copying;
  const Peak peak = find_peak(copying.selected, copying.program);
  EXPECT_EQ(peak.op, 2U);
  EXPECT_EQ(peak.program, ProgramKind::kMiniBatch);
  EXPECT_EQ(sum(peak.holding), 4 * kTensor);
}

TEST(PassSeconds, PartAtTheFirstGradient) {
  const PassSeconds seconds = pass_seconds(CopyingProgram().selected, 0.5);
  EXPECT_DOUBLE_EQ(seconds.forward, 1 + 2 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(seconds.backward, 4 + 8 + 2 * 0.5);
}

TEST(LimitedBy, NamesWhatCostsTime) {
  Program program;
  program.prediction = {.seconds = 10, .seconds_unlimited = 10};
  Timeline timeline{.seconds = 10};
  EXPECT_NE(limited_by(program, timeline, 0).find("nothing"), std::string::npos);
  program.prediction.bytes_out = 1000;
  EXPECT_NE(limited_by(program, timeline, 0).find("copies are hidden"), std::string::npos);
  timeline.waiting = 1;
  timeline.recomputing = 2;
  const std::string text = limited_by(program, timeline, 0);
  EXPECT_LT(text.find("20.0 % computing"), text.find("10.0 % waiting")) << text;
  program.host_bytes = 99;
  EXPECT_NE(limited_by(program, timeline, 100).find("and host memory"), std::string::npos);
}

TEST(Use, EveryOneHasAName) {
  for (int use = 0; use < kUses; ++use) EXPECT_FALSE(to_string(static_cast<Use>(use)).empty());
}

}  // namespace
}  // namespace lantern::plan
