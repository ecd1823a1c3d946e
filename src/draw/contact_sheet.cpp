#include "draw/contact_sheet.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/types.hpp"
#include "draw/surface.hpp"

namespace lantern::draw {
namespace {

constexpr Color kSheetColor{32, 32, 32};
constexpr Color kCaptionColor{230, 230, 230};
constexpr double kCaptionFont = 12;  // px

// Which source pixels, with which weights (sum 1), make one target pixel along one axis: the area
// it covers when shrinking, the nearest pixel when growing (so that single pixels stay visible).
struct Tap {
  std::int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Tap> make_taps(std::int64_t source, std::int64_t target) {
  std::vector<Tap> taps(static_cast<std::size_t>(target));
  const double step = static_cast<double>(source) / static_cast<double>(target);
  for (std::int64_t i = 0; i < target; ++i) {
    Tap& tap = taps[static_cast<std::size_t>(i)];
    const double low = static_cast<double>(i) * step;
    if (step <= 1) {
      tap.first = std::min(static_cast<std::int64_t>(low + step / 2), source - 1);
      tap.weights = {1.0F};
      continue;
    }
    const double high = std::min(low + step, static_cast<double>(source));
    tap.first = std::min(static_cast<std::int64_t>(low), source - 1);
    for (std::int64_t j = tap.first; static_cast<double>(j) < high && j < source; ++j) {
      const double part =
          std::min(high, static_cast<double>(j + 1)) - std::max(low, static_cast<double>(j));
      tap.weights.push_back(static_cast<float>(part / (high - low)));
    }
  }
  return taps;
}

// Scales `cell` to [x, x + w) x [y, y + h) of the sheet.
void paste(const SheetCell& cell, RgbPicture& sheet, std::int64_t x, std::int64_t y, std::int64_t w,
           std::int64_t h) {
  const std::vector<Tap> columns = make_taps(cell.width, w);
  const std::vector<Tap> rows = make_taps(cell.height, h);
  std::vector<float> line(static_cast<std::size_t>(3 * w));
  for (std::int64_t row = 0; row < h; ++row) {
    const Tap& down = rows[static_cast<std::size_t>(row)];
    std::fill(line.begin(), line.end(), 0.0F);
    for (std::size_t j = 0; j < down.weights.size(); ++j) {
      const std::uint8_t* source =
          cell.pixels.data() + 3 * (down.first + static_cast<std::int64_t>(j)) * cell.width;
      for (std::size_t column = 0; column < columns.size(); ++column) {
        const Tap& across = columns[column];
        for (std::size_t i = 0; i < across.weights.size(); ++i) {
          const std::uint8_t* pixel = source + 3 * (across.first + static_cast<std::int64_t>(i));
          const float weight = down.weights[j] * across.weights[i];
          for (std::size_t c = 0; c < 3; ++c)
            line[3 * column + c] += weight * static_cast<float>(pixel[c]);
        }
      }
    }
    std::uint8_t* target = sheet.pixels.data() + 3 * ((y + row) * sheet.width + x);
    std::transform(line.begin(), line.end(), target, [](float value) {
      return static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
    });
  }
}

}  // namespace

RgbPicture contact_sheet(std::span<const SheetCell> cells, const SheetOptions& options) {
  RgbPicture sheet;
  if (cells.empty()) return sheet;
  const auto count = static_cast<std::int64_t>(cells.size());
  const std::int64_t cell_w = std::clamp(options.cell_width, 1, 1 << 14);
  const std::int64_t cell_h = std::clamp(options.cell_height, 1, 1 << 14);
  const std::int64_t gap = std::clamp(options.gap, 0, 1 << 10);
  std::int64_t columns = options.columns;
  if (columns <= 0) {
    // columns * cell_w close to rows * cell_h
    columns = std::llround(std::ceil(std::sqrt(
        static_cast<double>(count) * static_cast<double>(cell_h) / static_cast<double>(cell_w))));
  }
  columns = std::clamp<std::int64_t>(columns, 1, count);
  const std::int64_t rows = ceil_div(count, columns);
  const bool has_captions = std::any_of(
      cells.begin(), cells.end(), [](const SheetCell& cell) { return !cell.caption.empty(); });
  const std::int64_t caption_h = has_captions ? text_height(kCaptionFont) : 0;

  sheet.width = gap + columns * (cell_w + gap);
  sheet.height = gap + rows * (cell_h + caption_h + gap);
  constexpr Bytes kLargestSheet = 1_GiB;
  if (3 * sheet.height > kLargestSheet / sheet.width) {
    throw Error(ErrorCode::kResource, "",
                "a sheet of {} pictures would have {} x {} pixels; show fewer or smaller ones",
                count, sheet.width, sheet.height);
  }
  sheet.pixels.resize(static_cast<std::size_t>(3 * sheet.width * sheet.height));
  fill_rect(sheet.view(), 0, 0, sheet.width, sheet.height, kSheetColor);

  for (std::int64_t i = 0; i < count; ++i) {
    const SheetCell& cell = cells[static_cast<std::size_t>(i)];
    check_view(cell.width, cell.height, cell.pixels.size());
    const std::int64_t x = gap + (i % columns) * (cell_w + gap);
    const std::int64_t y = gap + (i / columns) * (cell_h + caption_h + gap);
    if (!cell.pixels.empty()) {
      const double scale = std::min(static_cast<double>(cell_w) / static_cast<double>(cell.width),
                                    static_cast<double>(cell_h) / static_cast<double>(cell.height));
      const auto scaled = [scale](std::int64_t side, std::int64_t room) {
        return std::clamp<std::int64_t>(std::llround(static_cast<double>(side) * scale), 1, room);
      };
      const std::int64_t w = scaled(cell.width, cell_w);
      const std::int64_t h = scaled(cell.height, cell_h);
      paste(cell, sheet, x + (cell_w - w) / 2, y + (cell_h - h) / 2, w, h);
    }
    if (!cell.caption.empty()) {
      const TextMask mask = text_mask(cell.caption, kCaptionFont, cell_w);
      blend(sheet.view(), mask, x + (cell_w - mask.width) / 2, y + cell_h, kCaptionColor);
    }
  }
  return sheet;
}

}  // namespace lantern::draw
