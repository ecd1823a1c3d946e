#include "draw/curve_chart.hpp"

#include <limits>

#include "decoded.hpp"
#include "draw/matrix_chart.hpp"

namespace lantern::draw {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool is_colored(int r, int g, int b) { return std::max({r, g, b}) - std::min({r, g, b}) > 120; }
bool is_blue(int r, int g, int b) { return b > r + 80 && b > g + 40; }

CurveChart falling(std::size_t curves) {
  CurveChart chart{.title = "Precision < recall & \"more\" \xFF", .x_name = "x", .y_name = "y"};
  for (std::size_t c = 0; c < curves; ++c) {
    CurveChart::Curve& curve = chart.curves.emplace_back();
    curve.name = "class <" + std::to_string(c) + ">";
    for (int i = 0; i <= 1000; ++i) {
      curve.points.push_back({i / 1000.0, 1 - i / 1000.0 * static_cast<double>(c + 1) / 10});
    }
  }
  return chart;
}

TEST(CurveChart, DrawsItsCurvesInPngAndSvg) {
  const Picture empty(render(CurveChart{}, ChartFormat::kPng, {.width = 640, .height = 480}));
  EXPECT_EQ(empty.width, 640);
  EXPECT_EQ(empty.height, 480);
  EXPECT_EQ(empty.count(is_colored), 0);
  const int one = Picture(render(falling(1), ChartFormat::kPng)).count(is_colored);
  EXPECT_GT(one, 500);
  EXPECT_GT(Picture(render(falling(4), ChartFormat::kPng)).count(is_colored), 3 * one);
  const std::string svg = render(falling(4), ChartFormat::kSvg);
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_TRUE(is_well_formed(svg));
}

TEST(CurveChart, AcceptsAnyNumbersAndAnyNumberOfCurves) {
  CurveChart odd;
  odd.curves = {
      {.name = "", .points = {{kNaN, 0}, {0, kNaN}, {-5, 1e300}, {9, -3}}, .is_main = true},
      {.name = "empty"}};
  for (const CurveChart& chart : {odd, falling(300)}) {
    EXPECT_GT(render(chart, ChartFormat::kPng, {.width = 1, .height = 1}).size(), 100U);
    EXPECT_TRUE(is_well_formed(render(chart, ChartFormat::kSvg)));
  }
}

TEST(CurveChart, LongCurvesStaySmall) {
  CurveChart chart;
  CurveChart::Curve& curve = chart.curves.emplace_back();
  for (int i = 0; i < 1000000; ++i) curve.points.push_back({i / 1e6, i % 2 == 0 ? 0.4 : 0.6});
  EXPECT_LT(render(chart, ChartFormat::kSvg).size(), 200000U);
}

TEST(MatrixChart, CellsAreAsDarkAsTheirShareOfTheRow) {
  MatrixChart chart{.title = "t", .row_name = "r", .column_name = "c", .labels = {"a", "b"}};
  chart.counts = {0, 0, 0, 0};
  EXPECT_EQ(Picture(render(chart, ChartFormat::kPng)).count(is_blue), 0);
  chart.counts = {10, 0, 0, 0};
  const int one = Picture(render(chart, ChartFormat::kPng)).count(is_blue);
  EXPECT_GT(one, 50000);
  chart.counts = {10, 0, 0, 3};
  const int two = Picture(render(chart, ChartFormat::kPng)).count(is_blue);
  EXPECT_GT(two, one * 19 / 10);
  chart.counts = {50, 1, 0, 0};
  EXPECT_LT(Picture(render(chart, ChartFormat::kPng)).count(is_blue), two * 6 / 10);
}

TEST(MatrixChart, IsASvgThatParsesOfAnySize) {
  for (const std::size_t side : {0U, 1U, 81U}) {
    MatrixChart chart{.title = "a < b & \"c\" \xFF"};
    chart.labels.assign(side, "some rather long <label> of a class");
    chart.counts.assign(side * side, 7);
    EXPECT_TRUE(is_well_formed(render(chart, ChartFormat::kSvg)));
    EXPECT_GT(render(chart, ChartFormat::kPng, {.width = 0, .height = 0}).size(), 100U);
  }
}

}  // namespace
}  // namespace lantern::draw
