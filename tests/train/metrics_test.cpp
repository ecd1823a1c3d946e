#include "train/metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/file.hpp"

namespace lantern::train {
namespace {

TEST(Metrics, EveryMeasureIsASeriesOfTheChartAndALineOfTheLog) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("lantern_metrics_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  {
    Metrics metrics(folder / "log.jsonl", folder / "chart.png", "net", 100, 20);
    metrics.add_evaluation(
        40, {.percents = {{"top1", 0.5}, {"top5", 0.75}}, .numbers = {{"top1", 0.5}}});
    metrics.add_evaluation(80, {.percents = {{"top1", 0.625}, {"top5", 1}}, .numbers = {}});
    const auto& series = metrics.chart_data().percents;
    ASSERT_EQ(series.size(), 2U);
    EXPECT_EQ(series[0].name, "top1") << "the first: its best value is marked";
    EXPECT_EQ(series[1].name, "top5");
    ASSERT_EQ(series[1].points.size(), 2U);
    EXPECT_EQ(series[0].points[1].iteration, 80);
    EXPECT_EQ(series[0].points[1].value, 0.625);
    EXPECT_EQ(series[1].points[0].value, 0.75);
  }
  EXPECT_EQ(
      read_file(folder / "log.jsonl", 1_MiB),
      "{\"iteration\":40,\"percents\":{\"top1\":0.5,\"top5\":0.75},\"schema\":1,\"top1\":0.5}\n"
      "{\"iteration\":80,\"percents\":{\"top1\":0.625,\"top5\":1.0},\"schema\":1}\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lantern::train
