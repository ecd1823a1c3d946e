// The counter-based generator: known answers, addressing, distribution.

#include "core/rng.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace lantern {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers that the authors publish with Random123 (Salmon et al. 2011).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Digits of pi.
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(StreamId, IsFnv1a) {
  EXPECT_EQ(stream_id(""), 0x811c9dc5U);
  EXPECT_EQ(stream_id("a"), 0xe40c292cU);
  EXPECT_EQ(stream_id("foobar"), 0xbf9cf968U);
}

std::vector<std::uint32_t> draw(Rng rng, int count) {
  std::vector<std::uint32_t> values;
  for (int i = 0; i < count; ++i) values.push_back(rng.next_u32());
  return values;
}

TEST(Rng, IsAFunctionOfItsAddress) {
  const auto first = draw(Rng(7, "mosaic", 3, 5), 9);
  EXPECT_EQ(first, draw(Rng(7, "mosaic", 3, 5), 9));
  std::set<std::vector<std::uint32_t>> streams{first};
  streams.insert(draw(Rng(8, "mosaic", 3, 5), 9));
  streams.insert(draw(Rng(7 + (1ULL << 32), "mosaic", 3, 5), 9));
  streams.insert(draw(Rng(7, "flip", 3, 5), 9));
  streams.insert(draw(Rng(7, "mosaic", 4, 5), 9));
  streams.insert(draw(Rng(7, "mosaic", 3 + (1ULL << 32), 5), 9));
  streams.insert(draw(Rng(7, "mosaic", 3, 6), 9));
  EXPECT_EQ(streams.size(), 7U);
}

TEST(Rng, NoTwoAddressesShareABlock) {
  // A stream that ran on into its neighbour's numbers would repeat them.
  std::set<std::uint64_t> seen;
  for (std::uint32_t index = 0; index < 40; ++index) {
    for (std::uint64_t iteration = 0; iteration < 10; ++iteration) {
      Rng rng(1, "blocks", iteration, index);
      for (int i = 0; i < 20; ++i) seen.insert(rng.next_u64());
    }
  }
  EXPECT_EQ(seen.size(), 40U * 10 * 20);
}

TEST(Rng, UniformFillsItsRange) {
  Rng rng(1, "uniform");
  double sum = 0;
  float low = 1;
  float high = 0;
  std::vector<int> bins(16);
  constexpr int kDraws = 64000;
  for (int i = 0; i < kDraws; ++i) {
    const float v = rng.uniform();
    ASSERT_GE(v, 0.0F);
    ASSERT_LT(v, 1.0F);
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
    ++bins[static_cast<std::size_t>(v * 16)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 / std::sqrt(12.0 * kDraws));
  EXPECT_LT(low, 1e-3F);
  EXPECT_GT(high, 1 - 1e-3F);
  double chi = 0;
  for (const int count : bins) chi += (count - 4000.0) * (count - 4000.0) / 4000;
  EXPECT_LT(chi, 45);  // 15 degrees of freedom, probability 1e-4
  for (int i = 0; i < 1000; ++i) {
    const float v = rng.uniform(-3.0F, 5.0F);
    ASSERT_GE(v, -3.0F);
    ASSERT_LT(v, 5.0F);
    // Few floats lie in between: rounding must not reach the open end.
    const float narrow = rng.uniform(1e6F, 1e6F + 0.25F);
    ASSERT_GE(narrow, 1e6F);
    ASSERT_LT(narrow, 1e6F + 0.25F);
    EXPECT_EQ(rng.uniform(2.0F, 2.0F), 2.0F);
  }
}

TEST(Rng, UniformIntHasBothEndsAndNothingBeyond) {
  Rng rng(2, "integers");
  std::vector<int> counts(7);
  for (int i = 0; i < 7000; ++i) {
    const std::int64_t v = rng.uniform_int(-3, 3);
    ASSERT_GE(v, -3);
    ASSERT_LE(v, 3);
    ++counts[static_cast<std::size_t>(v + 3)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(rng.uniform_int(5, 5), 5);
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 64; ++i) {
    const std::int64_t v = rng.uniform_int(kLowest, kHighest);
    negative = negative || v < 0;
    positive = positive || v > 0;
    EXPECT_LE(rng.uniform_int(kHighest - 1, kHighest), kHighest);
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Rng, CoinAndNormalHaveTheirMoments) {
  Rng rng(3, "moments");
  constexpr int kDraws = 40000;
  int heads = 0;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    heads += rng.coin() ? 1 : 0;
    const double v = rng.normal();
    ASSERT_TRUE(std::isfinite(v));
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
  }
  EXPECT_NEAR(heads, kDraws / 2, 5 * std::sqrt(kDraws) / 2);
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

}  // namespace
}  // namespace lantern
