#pragma once

#include <string>
#include <vector>

#include "draw/chart.hpp"

namespace lantern::draw {

/// Curves within the unit square, such as precision over recall.
struct CurveChart {
  struct Point {
    double x = 0, y = 0;
  };
  struct Curve {
    std::string name{};
    std::vector<Point> points{};  ///< x ascending; what is not finite is left out
    bool is_main = false;         ///< thick and black, above the others
  };
  std::string title{}, x_name{}, y_name{};
  std::vector<Curve> curves{};
};

/// The bytes of the picture file. The legend names as many curves as it has room for, and says how
/// many more there are.
std::string render(const CurveChart& chart, ChartFormat format, ChartSize size = {});

}  // namespace lantern::draw
