#include "draw/flow_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace lantern::draw {

namespace {

// Pixels.
constexpr int kBoxWidth = 250, kBoxHeight = 36, kColumn = kBoxWidth + 24, kRow = kBoxHeight + 24;
constexpr int kMargin = 24, kHeader = 32, kLane = 9, kCharacters = 40;
// Light fills, dark enough apart to be told from each other; the text on them is black.
constexpr std::array<const char*, 8> kFills{"#dbe9f6", "#e2f0d9", "#fde9d9", "#f3e1f0",
                                            "#fff6cc", "#d9f0ee", "#f2dcdb", "#e6e6e6"};

struct Place {
  int row = 0, column = 0;
};

// An arrow that passes at least one row of boxes.
struct LongArrow {
  std::size_t from, to;
  int lane = 0;
};

// Rows by the longest way from a start; in a row, the column of the first input where that is free.
std::vector<Place> places_of(const std::vector<FlowNode>& nodes) {
  std::vector<Place> places(nodes.size());
  std::vector<std::vector<bool>> taken;  // [row][column]
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Place& place = places[i];
    for (const std::size_t input : nodes[i].inputs) {
      LANTERN_ASSERT(input < i, "a box stands after those it reads");
      place.row = std::max(place.row, places[input].row + 1);
    }
    if (static_cast<std::size_t>(place.row) >= taken.size()) taken.resize(place.row + 1);
    std::vector<bool>& row = taken[static_cast<std::size_t>(place.row)];
    auto column = static_cast<std::size_t>(
        nodes[i].inputs.empty() ? 0 : places[nodes[i].inputs.front()].column);
    while (column < row.size() && row[column]) ++column;
    if (column >= row.size()) row.resize(column + 1);
    row[column] = true;
    place.column = static_cast<int>(column);
  }
  return places;
}

// Arrows whose rows overlap get different lanes; the lowest that is free.
int assign_lanes(std::vector<LongArrow>& arrows, const std::vector<Place>& places) {
  std::vector<int> free_from;  // by lane: the first row that it is free in again
  std::ranges::stable_sort(arrows, {},
                           [&](const LongArrow& arrow) { return places[arrow.from].row; });
  for (LongArrow& arrow : arrows) {
    const auto lane =
        std::ranges::find_if(free_from, [&](int row) { return row <= places[arrow.from].row; });
    arrow.lane = static_cast<int>(lane - free_from.begin());
    if (lane == free_from.end()) free_from.push_back(0);
    free_from[static_cast<std::size_t>(arrow.lane)] = places[arrow.to].row;
  }
  return static_cast<int>(free_from.size());
}

std::string escaped(const std::string& text, std::size_t most) {
  std::string out;
  for (const char c : text.size() > most ? text.substr(0, most - 3) + "..." : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters have no place in XML.
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

int left_of(const Place& place) { return kMargin + place.column * kColumn; }
int top_of(const Place& place) { return kMargin + kHeader + place.row * kRow; }

std::string box(const FlowNode& node, const Place& place) {
  const int x = left_of(place), y = top_of(place);
  return fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\"/>\n"
      "<text class=\"title\" x=\"{}\" y=\"{}\">{}</text>\n<text x=\"{}\" y=\"{}\">{}</text>\n",
      x, y, kBoxWidth, kBoxHeight, kFills[static_cast<std::size_t>(node.color) % kFills.size()],
      x + 8, y + 15, escaped(node.title, kCharacters), x + 8, y + 29,
      escaped(node.detail, kCharacters));
}

std::string short_arrow(const Place& from, const Place& to) {
  const int x1 = left_of(from) + kBoxWidth / 2, y1 = top_of(from) + kBoxHeight;
  const int x2 = left_of(to) + kBoxWidth / 2, y2 = top_of(to);
  return fmt::format("<path d=\"M{} {} C{} {} {} {} {} {}\"/>\n", x1, y1, x1, y1 + 12, x2, y2 - 12,
                     x2, y2);
}

// Out below the box, along its lane right of all boxes, and back above the other box.
std::string long_arrow(const LongArrow& arrow, const std::vector<Place>& places, int lanes_at) {
  const Place &from = places[arrow.from], &to = places[arrow.to];
  const int lane = lanes_at + arrow.lane * kLane;
  const int x1 = left_of(from) + kBoxWidth * 3 / 4, y1 = top_of(from) + kBoxHeight;
  const int x2 = left_of(to) + kBoxWidth * 3 / 4, y2 = top_of(to);
  return fmt::format("<path d=\"M{} {} v8 H{} V{} H{} V{}\"/>\n", x1, y1, lane, y2 - 9, x2, y2);
}

}  // namespace

std::string flow_chart_svg(const std::string& title, const std::vector<FlowNode>& nodes) {
  const std::vector<Place> places = places_of(nodes);
  int columns = 1, rows = 1;
  for (const Place& place : places) {
    columns = std::max(columns, place.column + 1);
    rows = std::max(rows, place.row + 1);
  }
  std::string arrows;
  std::vector<LongArrow> passing;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t input : nodes[i].inputs) {
      if (places[i].row == places[input].row + 1) {
        arrows += short_arrow(places[input], places[i]);
      } else {
        passing.push_back({input, i});
      }
    }
  }
  const int lanes = assign_lanes(passing, places);
  const int lanes_at = kMargin + columns * kColumn;
  for (const LongArrow& arrow : passing) arrows += long_arrow(arrow, places, lanes_at);

  const int width = lanes_at + lanes * kLane + kMargin;
  const int height = 2 * kMargin + kHeader + rows * kRow;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n<style>text {{ font: 11px \"DejaVu Sans\", sans-serif; }} .title {{ font-weight: "
      "bold; }}\n.head {{ font-size: 16px; }} rect {{ stroke: #555; }} path {{ fill: none; stroke: "
      "#555; marker-end: url(#tip); }}</style>\n"
      "<marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><polygon points=\"0,0 8,4 0,8\" "
      "fill=\"#555\"/></marker>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\" style=\"stroke: none\"/>\n"
      "<text class=\"title head\" x=\"{2}\" y=\"{3}\">{4}</text>\n",
      width, height, kMargin, kMargin + 12, escaped(title, 200));
  svg += arrows;
  for (std::size_t i = 0; i < nodes.size(); ++i) svg += box(nodes[i], places[i]);
  return svg + "</svg>\n";
}

}  // namespace lantern::draw
