#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lantern::draw {

/// A box of a flow chart. Boxes stand in an order in which every one comes after those it reads.
struct FlowNode {
  std::string title, detail;
  int color = 0;                    ///< boxes of one number look alike
  std::vector<std::size_t> inputs;  ///< indices of earlier boxes
};

/// A drawing of the boxes from top to bottom as SVG text: each below all that it reads; an arrow
/// that passes other boxes runs in a lane of its own beside them.
std::string flow_chart_svg(const std::string& title, const std::vector<FlowNode>& nodes);

}  // namespace lantern::draw
