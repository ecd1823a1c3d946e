#include "draw/flow_chart.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

namespace lantern::draw {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

struct Box {
  int x = 0, y = 0, width = 0, height = 0;
};
std::vector<Box> boxes_in(const std::string& svg) {
  std::vector<Box> boxes;
  std::istringstream lines(svg);
  for (std::string line; std::getline(lines, line);) {
    Box b;
    if (std::sscanf(line.c_str(), R"(<rect x="%d" y="%d" width="%d" height="%d")", &b.x, &b.y,
                    &b.width, &b.height) == 4) {
      boxes.push_back(b);
    }
  }
  return boxes;
}

// A row of boxes, each reading the one before, and the given arrows besides.
std::vector<FlowNode> chain(std::size_t length,
                            const std::vector<std::array<std::size_t, 2>>& arrows) {
  std::vector<FlowNode> nodes(length);
  for (std::size_t i = 1; i < length; ++i) nodes[i].inputs.push_back(i - 1);
  for (const auto& [from, to] : arrows) nodes[to].inputs.push_back(from);
  return nodes;
}

TEST(FlowChart, StandsBelowWhatItReads) {
  // A diamond with two boxes side by side.
  const std::vector<FlowNode> nodes{{.title = "a"},
                                    {.title = "b", .inputs = {0}},
                                    {.title = "c", .inputs = {0}},
                                    {.title = "d", .inputs = {1, 2}}};
  const std::vector<Box> boxes = boxes_in(flow_chart_svg("diamond", nodes));
  ASSERT_EQ(boxes.size(), 4U);
  EXPECT_GT(boxes[1].y, boxes[0].y + boxes[0].height);
  EXPECT_EQ(boxes[1].y, boxes[2].y);
  EXPECT_GE(boxes[2].x, boxes[1].x + boxes[1].width);
  EXPECT_GT(boxes[3].y, boxes[2].y + boxes[2].height);
}

TEST(FlowChart, DrawsAnArrowForEveryInput) {
  const std::string svg = flow_chart_svg("n", chain(6, {{0, 3}, {1, 5}, {2, 4}}));
  EXPECT_EQ(count(svg, "<path "), 5U + 3U);
  EXPECT_EQ(count(svg, "<rect x="), 6U);
}

TEST(FlowChart, LongArrowsThatMeetHaveLanesOfTheirOwn) {
  const std::string svg =
      flow_chart_svg("n", chain(12, {{0, 3}, {1, 6}, {2, 9}, {3, 5}, {6, 8}, {9, 11}}));
  // lane -> the stretches that arrows run along it
  std::map<int, std::vector<std::array<int, 2>>> lanes;
  std::istringstream lines(svg);
  for (std::string line; std::getline(lines, line);) {
    int x1, y1, lane, y2, x2, y3;
    if (std::sscanf(line.c_str(), "<path d=\"M%d %d v8 H%d V%d H%d V%d\"", &x1, &y1, &lane, &y2,
                    &x2, &y3) == 6) {
      lanes[lane].push_back({y1, y2});
      for (const Box& box : boxes_in(svg)) EXPECT_GT(lane, box.x + box.width);
    }
  }
  std::size_t arrows = 0;
  for (const auto& [lane, stretches] : lanes) {
    arrows += stretches.size();
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        EXPECT_TRUE(stretches[i][0] >= stretches[k][1] || stretches[k][0] >= stretches[i][1])
            << "two arrows in lane " << lane;
      }
    }
  }
  EXPECT_EQ(arrows, 6U);
  EXPECT_EQ(lanes.size(), 3U);  // no more of them than needed
}

TEST(FlowChart, WritesTextThatIsNoMarkup) {
  const std::string svg = flow_chart_svg(
      "<a> & \"b\"", {{.title = "x<y", .detail = std::string("tab\there") + std::string(80, 'z')}});
  EXPECT_NE(svg.find("&lt;a&gt; &amp; &quot;b&quot;"), std::string::npos);
  EXPECT_NE(svg.find("x&lt;y"), std::string::npos);
  EXPECT_EQ(svg.find('\t'), std::string::npos);
  EXPECT_NE(svg.find("zz..."), std::string::npos);
}

TEST(FlowChart, HoldsEveryBox) {
  const std::string svg = flow_chart_svg("n", chain(40, {{0, 39}}));
  int width = 0, height = 0;
  ASSERT_EQ(
      std::sscanf(svg.c_str(), R"(<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d")",
                  &width, &height),
      2);
  for (const Box& box : boxes_in(svg)) {
    EXPECT_LT(box.x + box.width, width);
    EXPECT_LT(box.y + box.height, height);
  }
}

}  // namespace
}  // namespace lantern::draw
