#include "draw/chart.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "decoded.hpp"
#include "draw/chart_scale.hpp"

namespace lantern::draw {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

ChartData run(int iterations, double start = 5) {
  ChartData data;
  data.title = "net";
  data.max_iterations = iterations;
  for (int i = 1; i <= iterations; ++i) {
    const double loss = start * std::exp(-5.0 * i / iterations) + 0.5;
    data.losses.push_back({i, loss * (1 + 0.1 * std::sin(i)), loss});
  }
  return data;
}

PercentSeries accuracy() { return {"mAP@0.50", {{100, 0.2}, {200, 0.655}, {300, 0.6}}}; }

bool is_red(int r, int g, int b) { return r > 180 && g < 90 && b < 90; }
bool is_blue(int r, int g, int b) { return r < 90 && g < 140 && b > 170; }
bool is_orange(int r, int g, int b) { return r > 190 && g > 70 && g < 110 && b < 30; }

TEST(Chart, IsAPngOfTheSizeAskedFor) {
  const Picture picture(render_chart(run(500), ChartFormat::kPng, {.width = 640, .height = 480}));
  EXPECT_EQ(picture.width, 640);
  EXPECT_EQ(picture.height, 480);
}

TEST(Chart, IsASvgThatParses) {
  ChartData data = run(500);
  data.percents = {accuracy()};
  data.title = "a < b & \"c\" \xFF";
  const std::string svg = render_chart(data, ChartFormat::kSvg);
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_FALSE(is_well_formed(svg.substr(0, svg.size() / 2)));  // the check can fail
}

TEST(Chart, DrawsEachSeriesItIsGivenAndNoOther) {
  ChartData data = run(500);
  const Picture losses(render_chart(data, ChartFormat::kPng));
  EXPECT_GT(losses.count(is_blue), 500);
  EXPECT_EQ(losses.count(is_red), 0);
  data.percents = {accuracy()};
  EXPECT_GT(Picture(render_chart(data, ChartFormat::kPng)).count(is_red), 300);
  data.losses.clear();
  EXPECT_EQ(Picture(render_chart(data, ChartFormat::kPng)).count(is_blue), 0);
}

TEST(Chart, SameDataSameBytes) {
  ChartData data = run(300);
  data.percents = {accuracy()};
  ChartData shuffled = data;
  std::reverse(shuffled.losses.begin(), shuffled.losses.end());
  // PNG only: cairo numbers the ids in an SVG through the whole process.
  const std::string png = render_chart(data, ChartFormat::kPng);
  EXPECT_TRUE(png == render_chart(data, ChartFormat::kPng));
  EXPECT_TRUE(png == render_chart(shuffled, ChartFormat::kPng));  // order does not matter
}

TEST(Chart, MarksLossesThatAreNotFinite) {
  ChartData data = run(500);
  EXPECT_EQ(Picture(render_chart(data, ChartFormat::kPng)).count(is_orange), 0);
  data.losses[250].loss = kNaN;
  EXPECT_GT(Picture(render_chart(data, ChartFormat::kPng)).count(is_orange), 100);
}

TEST(Chart, AcceptsAnyNumbers) {
  ChartData all_bad;
  all_bad.losses = {{1, kNaN, kNaN}, {2, kInf, kInf}, {3, -kInf, kNaN}};
  all_bad.percents = {{"", {{1, kNaN}, {2, kInf}}}, {"x", {}}};
  all_bad.rates = {{1, kNaN}, {2, 0}};
  all_bad.max_loss = kNaN;
  all_bad.hours_left = kInf;
  ChartData extreme;
  extreme.losses = {{std::numeric_limits<std::int64_t>::min(), 1e308, 1e308},
                    {std::numeric_limits<std::int64_t>::max(), -1e308, 1e-308},
                    {0, 0, 0}};
  extreme.percents = {{"m", {{-5, -3}, {5, 1e300}}}};
  ChartData negative;
  negative.losses = {{1, -3, -3}, {2, -4, -4}};
  for (const ChartData& data : {ChartData{}, all_bad, extreme, negative, run(1), run(2, 1e6)}) {
    for (const ChartFormat format : {ChartFormat::kPng, ChartFormat::kSvg}) {
      EXPECT_GT(render_chart(data, format).size(), 100U);
      EXPECT_GT(render_chart(data, format, {.width = -1, .height = 0}).size(), 100U);
    }
  }
}

TEST(Chart, AMillionIterationsStaySmall) {
  EXPECT_LT(render_chart(run(1000000), ChartFormat::kSvg).size(), 500000U);
}

TEST(LossScale, IsLinearUntilTheLossLeavesTheRange) {
  const std::vector<LossPoint> low{{1, 900, 1.2},
                                   {2, 1, 0.8}};  // a single spike is not the average
  EXPECT_FALSE(loss_scale(low, 20).logarithmic);
  EXPECT_EQ(loss_scale(low, 20).low, 0);
  EXPECT_NEAR(loss_scale(low, 20).high, 1.4, 1e-9);
  const std::vector<LossPoint> high{{1, 900, 900}, {2, 2, 2}};
  const Scale scale = loss_scale(high, 20);
  EXPECT_TRUE(scale.logarithmic);
  EXPECT_DOUBLE_EQ(scale.low, 1);
  EXPECT_DOUBLE_EQ(scale.high, 1000);
  EXPECT_NEAR(scale.position(std::sqrt(1000.0)), 0.5, 1e-12);
  EXPECT_EQ(scale.position(0), 0);
  EXPECT_FALSE(loss_scale(high, 2000).logarithmic);
}

TEST(Ticks, AreRoundAndInside) {
  std::vector<std::string> labels;
  for (const Tick& tick : make_ticks({0, 1.4}, 8)) labels.push_back(tick.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "0.2", "0.4", "0.6", "0.8", "1", "1.2", "1.4"}));
  labels.clear();
  for (const Tick& tick : make_ticks({1, 1000, true}, 10)) {
    if (!tick.label.empty()) labels.push_back(tick.label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"1", "2", "5", "10", "20", "50", "100", "200", "500",
                                              "1000"}));
}

TEST(ThinOut, KeepsSpikesAndEnds) {
  std::vector<SeriesPoint> points;
  for (int i = 0; i < 10000; ++i) points.push_back({i, i == 4321 ? 99.0 : i == 777 ? kNaN : 1.0});
  const std::vector<SeriesPoint> few = thin_out(points, 9999, 100);
  EXPECT_LE(few.size(), 4 * 101U);
  EXPECT_EQ(few.front().iteration, 0);
  EXPECT_EQ(few.back().iteration, 9999);
  EXPECT_TRUE(
      std::any_of(few.begin(), few.end(), [](const SeriesPoint& p) { return p.value == 99.0; }));
  EXPECT_TRUE(std::is_sorted(
      few.begin(), few.end(),
      [](const SeriesPoint& a, const SeriesPoint& b) { return a.iteration < b.iteration; }));
  EXPECT_TRUE(std::none_of(few.begin(), few.end(),
                           [](const SeriesPoint& p) { return std::isnan(p.value); }));
}

}  // namespace
}  // namespace lantern::draw
