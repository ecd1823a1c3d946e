// Text helpers, sizes and shapes.

#include "core/text.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/types.hpp"

namespace lantern {
namespace {

TEST(Text, TrimTakesBlanksFromBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("a"), "a");
  EXPECT_EQ(trim(" \r\n\t"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitKeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,b", ','), (Parts{"a", "b"}));
  EXPECT_EQ(split(",a,,", ','), (Parts{"", "a", "", ""}));
  EXPECT_EQ(split("", ','), Parts{""});
}

TEST(Text, ParseIntTakesWholeNumbersOnly) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("-7"), -7);
  EXPECT_EQ(parse_int("+7"), 7);
  EXPECT_EQ(parse_int("007"), 7);
  EXPECT_EQ(parse_int("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_int("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"", "+", "-", "1.0", "1 ", " 1", "1x", "x", "0x10", "1e3", "--1",
                           "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_EQ(parse_int(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_int("+-7"), std::nullopt);
  EXPECT_EQ(parse_int("++7"), std::nullopt);
}

TEST(Text, ParseFloatDoesNotDependOnTheLocale) {
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // a decimal comma, where the system has it
  EXPECT_EQ(parse_float("1.5"), 1.5);
  EXPECT_EQ(parse_float("1,5"), std::nullopt);
  std::setlocale(LC_ALL, "C");
}

TEST(Text, ParseFloatTakesWholeNumbersOnly) {
  EXPECT_EQ(parse_float("+.5"), 0.5);
  EXPECT_EQ(parse_float("-2e-3"), -2e-3);
  EXPECT_EQ(parse_float("3"), 3.0);
  for (const char* text : {"", "+", ".", "1.5f", "1.5 ", "1..5", "e5", "0x1p3", "+-1"}) {
    EXPECT_EQ(parse_float(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_float("1e999"), std::nullopt);
}

TEST(Text, ParseBytesCountsInPowersOf1024) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("8G"), 8_GiB);
  EXPECT_EQ(parse_bytes("8g"), 8_GiB);
  EXPECT_EQ(parse_bytes("512M"), 512_MiB);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes(" 3 KB "), 3_KiB);
  EXPECT_EQ(parse_bytes("1T"), 1024_GiB);
  EXPECT_EQ(parse_bytes("12B"), 12);
  for (const char* text : {"", " ", "B", "i", "iB", "G", "-1", "-1G", "nan", "inf", "infG", "1e30",
                           "8X", "8GG", "8 8", "1e999G"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Text, FormattedBytesReadWell) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1_MiB), "1.0 MiB");
  EXPECT_EQ(format_bytes(5_GiB / 4), "1.25 GiB");
}

TEST(Text, NearestIsALikelyMisspellingOrNothing) {
  const std::vector<std::string_view> keys{"size", "stride", "stride_x", "padding"};
  EXPECT_EQ(nearest("siz", keys), "size");
  EXPECT_EQ(nearest("szie", keys), std::nullopt);  // two edits of four letters
  EXPECT_EQ(nearest("paddding", keys), "padding");
  EXPECT_EQ(nearest("stride-x", keys), "stride_x");
  EXPECT_EQ(nearest("stride", keys), "stride");
  EXPECT_EQ(nearest("learning_rate", keys), std::nullopt);
  EXPECT_EQ(nearest("", keys), std::nullopt);
  EXPECT_EQ(nearest("size", {}), std::nullopt);
}

TEST(Text, ReadableKeepsMessagesOnTheirLines) {
  using namespace std::string_view_literals;
  EXPECT_EQ(readable("röd\ta\nb"), "röd\ta\nb");
  EXPECT_EQ(readable("a\0b\x1b[31m\r\x7f"sv), "a?b?[31m??");
  EXPECT_EQ(readable(""), "");
  EXPECT_EQ(readable("\n\n"), "\n\n");
  const std::string cut = readable(std::string(1000000, 'x') + ": is missing\nnext");
  EXPECT_LT(cut.size(), kLongestLine + 20);
  EXPECT_TRUE(cut.ends_with("xx: is missing\nnext"));
}

TEST(Shape, CountsInSixtyFourBits) {
  const Shape shape{64, 1024, 608, 608};
  EXPECT_EQ(shape.elements(), 64LL * 1024 * 608 * 608);
  EXPECT_GT(shape.elements(), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(shape.to_string(), "[64, 1024, 608, 608]");
  EXPECT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape.n() * shape.c(), 64 * 1024);
  EXPECT_EQ(shape.h(), shape.w());
}

TEST(Shape, ComparesRankAndExtents) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().to_string(), "[]");
  EXPECT_NE(Shape{3}, (Shape{3, 1}));
  EXPECT_EQ((Shape{3, 0}).elements(), 0);
  Shape shape{1, 2, 3, 4, 5};
  shape.set(4, 6);
  EXPECT_EQ(shape, (Shape{1, 2, 3, 4, 6}));
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6}), Error);
}

TEST(Types, SizesAndNames) {
  EXPECT_EQ(size_of(DType::kF32), 4);
  EXPECT_EQ(size_of(DType::kF64), 8);
  EXPECT_EQ(size_of(DType::kU8), 1);
  EXPECT_EQ(size_of(DType::kI32), 4);
  EXPECT_EQ(to_string(DType::kF32), "f32");
  EXPECT_EQ(round_up(1, 16), 16);
  EXPECT_EQ(round_up(32, 16), 32);
  EXPECT_EQ(round_up(0, 16), 0);
  EXPECT_EQ(ceil_div(33, 16), 3);
  EXPECT_EQ(ceil_div(32, 16), 2);
}

}  // namespace
}  // namespace lantern
