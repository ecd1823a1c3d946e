#include "draw/picture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "draw/color.hpp"

namespace lantern::draw {
namespace {

constexpr std::uint8_t kGrey = 90;

struct Canvas {
  Canvas(std::int64_t w, std::int64_t h)
      : width(w), height(h), pixels(static_cast<std::size_t>(3 * w * h), kGrey) {}

  RgbView view() { return {width, height, pixels}; }
  Color at(std::int64_t x, std::int64_t y) const {
    const auto i = static_cast<std::size_t>(3 * (y * width + x));
    return {pixels[i], pixels[i + 1], pixels[i + 2]};
  }
  bool changed(std::int64_t x, std::int64_t y) const {
    return at(x, y) != Color{kGrey, kGrey, kGrey};
  }
  std::int64_t count(Color color) const {
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < width * height; ++i)
      n += at(i % width, i / width) == color ? 1 : 0;
    return n;
  }
  bool untouched() const {
    return std::all_of(pixels.begin(), pixels.end(), [](std::uint8_t v) { return v == kGrey; });
  }

  std::int64_t width, height;
  std::vector<std::uint8_t> pixels;
};

TEST(DrawDetections, PaintsTheOutlineAndNothingElse) {
  Canvas canvas(200, 100);
  // 80 x 40 pixels: columns [60, 140), rows [30, 70)
  const std::vector<LabelledBox> boxes{
      {.x = 0.5F, .y = 0.5F, .w = 0.4F, .h = 0.4F, .class_id = 1, .label = ""}};
  draw_detections(canvas.view(), boxes, 3);
  for (std::int64_t y = 0; y < 100; ++y) {
    for (std::int64_t x = 0; x < 200; ++x) {
      const bool inside = x >= 60 && x < 140 && y >= 30 && y < 70;
      const bool interior = x >= 61 && x < 139 && y >= 31 && y < 69;
      ASSERT_EQ(canvas.changed(x, y), inside && !interior) << x << ", " << y;
    }
  }
  EXPECT_EQ(canvas.at(60, 30), class_color(1, 3));
}

TEST(DrawDetections, LineWidthGrowsWithTheHeightOnly) {
  for (const auto& [height, want] : {std::pair{100, 1}, {999, 1}, {1000, 2}, {2000, 4}}) {
    Canvas canvas(60, height);
    const std::vector<LabelledBox> boxes{{.x = 0.5F, .y = 0.5F, .w = 0.5F, .h = 0.5F, .label = ""}};
    draw_detections(canvas.view(), boxes, 1);
    int width = 0;
    for (std::int64_t x = 0; x < 30; ++x) width += canvas.changed(x, height / 2) ? 1 : 0;
    EXPECT_EQ(width, want) << height;
  }
}

TEST(DrawDetections, LabelIsReadableAtEverySize) {
  struct Case {
    std::int64_t width, height;
  };
  for (const Case& size :
       {Case{28, 28}, {100, 75}, {640, 480}, {3000, 2000}, {64, 2000}, {2000, 64}}) {
    Canvas canvas(size.width, size.height);
    const std::vector<LabelledBox> boxes{
        {.x = 0.5F, .y = 0.5F, .w = 0.3F, .h = 0.3F, .class_id = 0, .label = "dog: 0.98"}};
    draw_detections(canvas.view(), boxes, 3);
    const Color background = class_color(0, 3);
    // Text is there (the pixels of its colour) and stands on a filled background.
    std::int64_t ink = 0;
    for (std::int64_t i = 0; i < size.width * size.height; ++i) {
      const Color pixel = canvas.at(i % size.width, i / size.width);
      ink += pixel.g == 0 && pixel.r < 140 ? 1 : 0;  // black blended into magenta
    }
    Canvas bare(size.width, size.height);
    std::vector<LabelledBox> unlabelled = boxes;
    unlabelled[0].label.clear();
    draw_detections(bare.view(), unlabelled, 3);
    const std::string name = std::to_string(size.width) + " x " + std::to_string(size.height);
    EXPECT_GT(ink, 8) << name;
    EXPECT_GT(canvas.count(background), bare.count(background)) << name;
  }
}

TEST(DrawDetections, TextGrowsWithThePicture) {
  const auto ink = [](std::int64_t width, std::int64_t height) {
    Canvas canvas(width, height);
    const std::vector<LabelledBox> boxes{
        {.x = 0.5F, .y = 0.5F, .w = 0.2F, .h = 0.2F, .label = "dog"}};
    draw_detections(canvas.view(), boxes, 3);
    return canvas.count({0, 0, 0});
  };
  EXPECT_GT(ink(3200, 2400), 8 * ink(640, 480));
}

TEST(DrawDetections, LabelLeavesHalfOfALowPictureFree) {
  Canvas canvas(640, 20);
  const std::vector<LabelledBox> boxes{{.x = 0.5F, .y = 0.5F, .w = 1, .h = 1, .label = "dog"}};
  draw_detections(canvas.view(), boxes, 3);
  int rows = 0;  // of the label, left of its text, inside the outline
  for (std::int64_t y = 0; y < 20; ++y) rows += canvas.changed(1, y) ? 1 : 0;
  EXPECT_GE(rows, 8);
  EXPECT_LE(rows, 12);  // half of it and the outline
}

TEST(DrawDetections, LabelOfABoxAtTheBorderStaysWhole) {
  // The number of text pixels does not depend on where the box is: nothing was cut.
  std::vector<std::int64_t> ink;
  for (const float x : {0.02F, 0.5F, 0.99F}) {
    for (const float y : {0.01F, 0.5F, 0.99F}) {
      Canvas canvas(640, 480);
      const std::vector<LabelledBox> boxes{
          {.x = x, .y = y, .w = 0.05F, .h = 0.05F, .label = "red cell: 0.98"}};
      draw_detections(canvas.view(), boxes, 3);
      ink.push_back(canvas.count({0, 0, 0}));
    }
  }
  EXPECT_GT(ink[0], 20);
  EXPECT_EQ(std::count(ink.begin(), ink.end(), ink[0]), 9);
}

TEST(DrawDetections, LabelsOfTwoBoxesAtOnePlaceDoNotCoverEachOther) {
  const LabelledBox box{.x = 0.5F, .y = 0.5F, .w = 0.3F, .h = 0.3F, .label = "dog: 0.98"};
  Canvas one(640, 480);
  draw_detections(one.view(), std::vector{box}, 3);
  Canvas two(640, 480);
  draw_detections(two.view(), std::vector{box, box}, 3);
  EXPECT_EQ(two.count({0, 0, 0}), 2 * one.count({0, 0, 0}));
}

TEST(DrawDetections, SameInputSamePixels) {
  const std::vector<LabelledBox> boxes{
      {.x = 0.3F, .y = 0.4F, .w = 0.3F, .h = 0.3F, .class_id = 7, .label = "cat"},
      {.x = 0.6F, .y = 0.5F, .w = 0.2F, .h = 0.9F, .class_id = 3, .label = "dog"}};
  Canvas first(320, 240);
  Canvas second(320, 240);
  draw_detections(first.view(), boxes, 80);
  draw_detections(second.view(), boxes, 80);
  EXPECT_EQ(first.pixels, second.pixels);
}

TEST(DrawDetections, BoxesThatReachBeyondThePictureAreCutAtItsBorder) {
  Canvas canvas(100, 100);
  const std::vector<LabelledBox> boxes{{.x = 0.5F, .y = 0.5F, .w = 3.0F, .h = 0.5F, .label = ""}};
  draw_detections(canvas.view(), boxes, 3);
  EXPECT_TRUE(canvas.changed(0, 50));
  EXPECT_TRUE(canvas.changed(99, 50));
  EXPECT_TRUE(canvas.changed(50, 25));
  EXPECT_FALSE(canvas.changed(50, 50));
}

TEST(DrawDetections, LeavesOutWhatCannotBeSeen) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  Canvas canvas(100, 100);
  const std::vector<LabelledBox> boxes{{.x = nan, .y = 0.5F, .w = 0.1F, .h = 0.1F, .label = "a"},
                                       {.x = 0.5F, .y = 0.5F, .w = inf, .h = 0.1F, .label = "b"},
                                       {.x = 0.5F, .y = 0.5F, .w = -0.2F, .h = 0.1F, .label = "c"},
                                       {.x = 5.0F, .y = 0.5F, .w = 0.1F, .h = 0.1F, .label = "d"},
                                       {.x = 0.5F, .y = -5.0F, .w = 0.1F, .h = 0.1F, .label = "e"}};
  draw_detections(canvas.view(), boxes, 3);
  EXPECT_TRUE(canvas.untouched());
}

TEST(DrawDetections, AcceptsAnyBoxesAndLabelsOnAnyPicture) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed, "draw");
    Canvas canvas(rng.uniform_int(1, 70), rng.uniform_int(1, 70));
    std::vector<LabelledBox> boxes(static_cast<std::size_t>(rng.uniform_int(0, 6)));
    for (LabelledBox& box : boxes) {
      const float scale = rng.coin() ? 1.0F : 1e30F;
      box = {.x = rng.uniform(-1, 2) * scale,
             .y = rng.uniform(-1, 2),
             .w = rng.uniform(0, 2) * scale,
             .h = rng.uniform(0, 2),
             .class_id = static_cast<int>(rng.uniform_int(-5, 100)),
             .label = ""};
      for (std::int64_t i = rng.uniform_int(0, 300); i > 0; --i) {
        box.label.push_back(static_cast<char>(rng.uniform_int(0, 255)));
      }
    }
    EXPECT_NO_THROW(
        draw_detections(canvas.view(), boxes, static_cast<int>(rng.uniform_int(-1, 80))))
        << seed;
  }
}

TEST(DrawDetections, NoBoxesOrNoPixelsChangeNothing) {
  Canvas canvas(50, 50);
  draw_detections(canvas.view(), {}, 3);
  EXPECT_TRUE(canvas.untouched());
  Canvas empty(0, 10);
  EXPECT_NO_THROW(draw_detections(
      empty.view(), std::vector<LabelledBox>{{.x = 0.5F, .y = 0.5F, .w = 1, .h = 1, .label = "a"}},
      3));
}

TEST(DrawDetections, RefusesABufferOfTheWrongSize) {
  std::vector<std::uint8_t> pixels(10);
  EXPECT_THROW(draw_detections({2, 2, pixels}, {}, 3), Error);
  EXPECT_THROW(draw_detections({-1, -1, pixels}, {}, 3), Error);
}

}  // namespace
}  // namespace lantern::draw
