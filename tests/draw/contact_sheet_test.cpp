#include "draw/contact_sheet.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace lantern::draw {
namespace {

std::vector<std::uint8_t> filled(std::int64_t width, std::int64_t height, std::uint8_t r,
                                 std::uint8_t g, std::uint8_t b) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t i = 0; i < width * height; ++i) pixels.insert(pixels.end(), {r, g, b});
  return pixels;
}

std::vector<int> at(const RgbPicture& picture, std::int64_t x, std::int64_t y) {
  const auto i = static_cast<std::size_t>(3 * (y * picture.width + x));
  return {picture.pixels[i], picture.pixels[i + 1], picture.pixels[i + 2]};
}

TEST(ContactSheet, PlacesPicturesRowByRow) {
  const auto red = filled(30, 20, 255, 0, 0);
  const auto green = filled(30, 20, 0, 255, 0);
  const auto blue = filled(30, 20, 0, 0, 255);
  const std::vector<SheetCell> cells{{30, 20, red, ""}, {30, 20, green, ""}, {30, 20, blue, ""}};
  const RgbPicture sheet =
      contact_sheet(cells, {.columns = 2, .cell_width = 60, .cell_height = 40, .gap = 4});
  EXPECT_EQ(sheet.width, 4 + 2 * 64);
  EXPECT_EQ(sheet.height, 4 + 2 * 44);
  EXPECT_EQ(at(sheet, 34, 24), (std::vector{255, 0, 0}));
  EXPECT_EQ(at(sheet, 98, 24), (std::vector{0, 255, 0}));
  EXPECT_EQ(at(sheet, 34, 68), (std::vector{0, 0, 255}));
  EXPECT_EQ(at(sheet, 98, 68), at(sheet, 0, 0));  // the last place stays empty
}

TEST(ContactSheet, KeepsTheAspectRatio) {
  const auto wide = filled(200, 20, 255, 255, 255);
  const RgbPicture sheet =
      contact_sheet(std::vector<SheetCell>{{200, 20, wide, ""}},
                    {.columns = 1, .cell_width = 100, .cell_height = 100, .gap = 0});
  EXPECT_EQ(at(sheet, 50, 50), (std::vector{255, 255, 255}));
  EXPECT_EQ(at(sheet, 50, 44), at(sheet, 0, 0));  // 100 x 10 pixels, in the middle
  EXPECT_EQ(at(sheet, 50, 45), (std::vector{255, 255, 255}));
}

TEST(ContactSheet, ShrinkingKeepsTheMeanGrowingKeepsThePixels) {
  std::vector<std::uint8_t> columns;  // black and white columns
  for (int i = 0; i < 40 * 40; ++i) columns.insert(columns.end(), 3, i % 2 == 0 ? 0 : 255);
  const RgbPicture small =
      contact_sheet(std::vector<SheetCell>{{40, 40, columns, ""}},
                    {.columns = 1, .cell_width = 10, .cell_height = 10, .gap = 0});
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_NEAR(at(small, i, i)[0], 127.5, 1);
  const RgbPicture large =
      contact_sheet(std::vector<SheetCell>{{40, 40, columns, ""}},
                    {.columns = 1, .cell_width = 120, .cell_height = 120, .gap = 0});
  for (std::int64_t x = 0; x < 120; ++x)
    EXPECT_EQ(at(large, x, 60)[0], x / 3 % 2 == 0 ? 0 : 255) << x;
}

TEST(ContactSheet, CaptionsGetARowOfTheirOwn) {
  const auto grey = filled(8, 8, 100, 100, 100);
  const SheetOptions options{.columns = 1, .cell_width = 100, .cell_height = 80, .gap = 0};
  const RgbPicture plain = contact_sheet(std::vector<SheetCell>{{8, 8, grey, ""}}, options);
  const RgbPicture named = contact_sheet(std::vector<SheetCell>{{8, 8, grey, "aug_1"}}, options);
  EXPECT_EQ(plain.height, 80);
  ASSERT_GT(named.height, 90);
  int bright = 0;
  for (std::int64_t y = 80; y < named.height; ++y) {
    for (std::int64_t x = 0; x < 100; ++x) bright += at(named, x, y)[0] > 150 ? 1 : 0;
  }
  EXPECT_GT(bright, 10);
}

TEST(ContactSheet, AcceptsNothingAndEmptyPictures) {
  EXPECT_EQ(contact_sheet({}).pixels.size(), 0U);
  const RgbPicture sheet = contact_sheet(std::vector<SheetCell>(5));
  EXPECT_GT(sheet.width * sheet.height, 0);
}

TEST(ContactSheet, RefusesASheetBeyondMemory) {
  const std::vector<SheetCell> cells(100000);
  EXPECT_THROW(contact_sheet(cells, {.columns = 1, .cell_width = 4000, .cell_height = 4000}),
               Error);
}

}  // namespace
}  // namespace lantern::draw
