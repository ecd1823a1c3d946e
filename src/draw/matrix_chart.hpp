#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "draw/chart.hpp"

namespace lantern::draw {

/// A square table of counts, such as a confusion matrix.
struct MatrixChart {
  std::string title{}, row_name{}, column_name{};
  std::vector<std::string> labels{};   ///< of rows and columns
  std::vector<std::int64_t> counts{};  ///< [labels][labels]; needs that size, none negative
};

/// The bytes of the picture file: every cell as dark as its share of its row, with its count where
/// there is room.
std::string render(const MatrixChart& chart, ChartFormat format, ChartSize size = {});

}  // namespace lantern::draw
