#include "draw/color.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <set>
#include <tuple>

namespace lantern::draw {
namespace {

TEST(ClassColor, FollowsTheWheelOfTheReference) {
  // offset = class * 123457 mod classes; offset 0 is magenta, the wheel then runs over blue and
  // green to red.
  EXPECT_EQ(class_color(0, 3), (Color{255, 0, 255}));
  EXPECT_EQ(class_color(0, 80), (Color{255, 0, 255}));
  EXPECT_EQ(class_color(1, 5), class_color(2 * 3, 5));  // same offset: 123457 mod 5 = 2
  EXPECT_EQ(class_color(1, 5), (Color{0, 255, 255}));   // 2/5 of the way: cyan
  EXPECT_EQ(class_color(2, 5), (Color{255, 255, 0}));   // 4/5: yellow
}

TEST(ClassColor, GivesEveryClassOfCocoItsOwn) {
  std::set<std::tuple<int, int, int>> seen;
  for (int k = 0; k < 80; ++k) {
    const Color c = class_color(k, 80);
    seen.insert({c.r, c.g, c.b});
  }
  EXPECT_EQ(seen.size(), 80U);
}

TEST(ClassColor, AcceptsAnyNumbers) {
  for (const int id : {INT_MIN, -1, 0, 7, INT_MAX}) {
    for (const int classes : {INT_MIN, -3, 0, 1, 80, INT_MAX}) {
      const Color c = class_color(id, classes);
      EXPECT_EQ(c, class_color(id, classes));
      EXPECT_EQ(std::max({c.r, c.g, c.b}), 255)
          << id << " of " << classes;  // full brightness: seen on dark pictures
    }
  }
}

TEST(TextColor, ContrastsWithItsBackground) {
  const Color black{0, 0, 0};
  const Color white{255, 255, 255};
  EXPECT_EQ(text_color_on({255, 255, 0}), black);
  EXPECT_EQ(text_color_on({0, 255, 0}), black);
  EXPECT_EQ(text_color_on({0, 0, 255}), white);
  EXPECT_EQ(text_color_on(black), white);
  EXPECT_EQ(text_color_on(white), black);
}

}  // namespace
}  // namespace lantern::draw
