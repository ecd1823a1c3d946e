#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "draw/picture.hpp"

namespace lantern::draw {

/// An owned picture of the form that RgbView describes.
struct RgbPicture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;
  RgbView view() { return {width, height, pixels}; }
};

struct SheetCell {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::span<const std::uint8_t> pixels;  ///< as in RgbView
  std::string caption;                   ///< UTF-8, one line, may be empty
};

struct SheetOptions {
  int columns = 0;        ///< 0: near a square sheet
  int cell_width = 320;   ///< px, room for one picture
  int cell_height = 240;  ///< px
  int gap = 8;            ///< px around and between the cells
};

/// A grid of pictures, row by row, each scaled to its cell with its aspect ratio kept; captions
/// below when any cell has one. No cells give an empty picture (0 x 0).
RgbPicture contact_sheet(std::span<const SheetCell> cells, const SheetOptions& options = {});

}  // namespace lantern::draw
