#include "draw/surface.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lantern::draw {
namespace {

TEST(CleanText, KeepsValidTextAndReplacesBrokenBytes) {
  EXPECT_EQ(clean_text("dog: 0.98"), "dog: 0.98");
  EXPECT_EQ(clean_text("Erythrozyt\xC3\xA9"), "Erythrozyt\xC3\xA9");
  EXPECT_EQ(clean_text("\xF0\x9F\x90\xB6"), "\xF0\x9F\x90\xB6");
  EXPECT_EQ(clean_text("a\tb\nc"), "a b c");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(clean_text("a\xFF"), "a" + bad);
  EXPECT_EQ(clean_text("\xC0\xAF"), bad + bad);            // overlong
  EXPECT_EQ(clean_text("\xED\xA0\x80"), bad + bad + bad);  // surrogate
  EXPECT_EQ(clean_text("\xE2\x82"), bad + bad);            // cut short
}

TEST(CleanText, CutsLongTextAtAWholeCharacter) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "\xC3\xA9";
  EXPECT_EQ(clean_text(text, 3), "\xC3\xA9\xC3\xA9\xC3\xA9\xE2\x80\xA6");
  EXPECT_EQ(clean_text("abc", 3), "abc");
}

TEST(TextMask, FitsItsTextAndItsLimit) {
  EXPECT_LT(text_width("dog", 12), text_width("dog: 0.98", 12));
  EXPECT_LT(text_width("dog", 12), text_width("dog", 24));
  const TextMask mask = text_mask("dog: 0.98", 12, 1000);
  EXPECT_EQ(mask.width, text_width("dog: 0.98", 12));
  EXPECT_EQ(mask.height, text_height(12));
  EXPECT_EQ(text_mask("dog: 0.98", 12, 10).width, 10);
  // A blank border: the first column and the last row carry no ink of this text.
  for (std::int64_t y = 0; y < mask.height; ++y)
    EXPECT_EQ(mask.coverage[static_cast<std::size_t>(y * mask.width)], 0);
}

}  // namespace
}  // namespace lantern::draw
