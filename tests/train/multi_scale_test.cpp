#include "train/multi_scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/error.hpp"

namespace lantern::train {
namespace {

constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();

TEST(MultiScale, ExamplesOfTheReference) {
  const MultiScale small{.net = {416, 416}, .random = 1};
  EXPECT_EQ(possible_sizes(small).front(), (NetSize{320, 320}));
  EXPECT_EQ(possible_sizes(small).back(), (NetSize{608, 608}));
  EXPECT_EQ(largest_size(small), (NetSize{608, 608}));
  EXPECT_EQ(possible_sizes(small).size(), 10U);  // 320, 352, ... 608
  const MultiScale large{.net = {608, 608}, .random = 1};
  EXPECT_EQ(possible_sizes(large).front(), (NetSize{480, 480}));
  EXPECT_EQ(possible_sizes(large).back(), (NetSize{896, 896}));
}

TEST(MultiScale, EverySizeDrawnIsInTheListAndTheWholeListIsDrawn) {
  for (const MultiScale& scale :
       {MultiScale{.net = {416, 416}, .random = 1}, MultiScale{.net = {512, 288}, .random = 1.34},
        MultiScale{.net = {64, 32}, .random = 0.7, .resize_step = 16, .seed = 9}}) {
    const std::vector<NetSize> sizes = possible_sizes(scale);
    std::set<std::pair<std::int64_t, std::int64_t>> drawn;
    for (std::int64_t k = 0; k < 5000; ++k) {
      const NetSize size = size_of_block(scale, k);
      EXPECT_NE(std::find(sizes.begin(), sizes.end(), size), sizes.end());
      EXPECT_EQ(size.width % scale.resize_step, 0);
      EXPECT_LE(size.width * size.height, largest_size(scale).width * largest_size(scale).height);
      drawn.insert({size.width, size.height});
    }
    // An end of the range may be a single point that is never hit.
    EXPECT_GE(drawn.size() + 1, sizes.size());
  }
}

TEST(MultiScale, IsLargestAtTheStartAndInTheLastHundredIterations) {
  const MultiScale scale{.net = {416, 416}, .random = 1, .max_batches = 1000};
  EXPECT_EQ(size_at(scale, 0), (NetSize{608, 608}));
  EXPECT_EQ(size_at(scale, 9), (NetSize{608, 608}));
  int smaller = 0;
  for (std::int64_t t = 10; t < 910; ++t) {
    EXPECT_EQ(size_at(scale, t), size_at(scale, t / 10 * 10));
    smaller += size_at(scale, t) != NetSize{608, 608} ? 1 : 0;
  }
  EXPECT_GT(smaller, 600);
  for (std::int64_t t = 910; t < 1000; ++t) EXPECT_EQ(size_at(scale, t), (NetSize{608, 608}));
}

TEST(MultiScale, DependsOnTheSeedAndOnNothingElse) {
  const MultiScale one{.net = {416, 416}, .random = 1, .seed = 1};
  MultiScale two = one;
  two.seed = 2;
  int different = 0;
  for (std::int64_t k = 50; k > 0; --k) {
    EXPECT_EQ(size_of_block(one, k), size_of_block(one, k));
    different += size_of_block(one, k) != size_of_block(two, k) ? 1 : 0;
  }
  EXPECT_GT(different, 25);
}

TEST(MultiScale, OffKeepsTheNetsSizeAndShrinkingNeverEnlarges) {
  const MultiScale off{.net = {100, 60}};
  EXPECT_EQ(size_at(off, 77), (NetSize{100, 60}));
  EXPECT_EQ(possible_sizes(off), (std::vector<NetSize>{{100, 60}}));
  const MultiScale tiny{.net = {32, 32}, .random = 1};
  EXPECT_EQ(size_for_factor(tiny, 0.9), (NetSize{32, 32}));  // round(1.9) = 2 steps would enlarge
  EXPECT_EQ(size_for_factor(tiny, 1.0), (NetSize{64, 64}));
  EXPECT_EQ(size_for_factor(tiny, 0.4), (NetSize{32, 32}));  // one step at least
}

TEST(MultiScale, RefusesScalesOutOfRangeAndStaysDefinedForThem) {
  const auto refused = [](double random, std::int64_t step) {
    try {
      check(MultiScale{.net = {32, 32}, .random = random, .resize_step = step}, "net.cfg:9");
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), "net.cfg:9");
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused(0, 32));
  EXPECT_FALSE(refused(1.34, 16));
  EXPECT_FALSE(refused(0.5, 16));
  for (const double bad : {-1.0, 1e300, 1e-300, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(refused(bad, 32)) << bad;
    EXPECT_LT(possible_sizes({.net = {32, 32}, .random = bad}).size(), 30U) << bad;
    EXPECT_GE(size_at({.net = {32, 32}, .random = bad}, 40).width, 32) << bad;
  }
  EXPECT_TRUE(refused(1, 0));
}

TEST(DynamicMinibatch, FormulaAndCap) {
  const NetSize largest{608, 608};
  EXPECT_EQ(dynamic_minibatch(8, largest, largest, kNoCap), 8);      // d = 8, 0.8 d = 6 is not more
  EXPECT_EQ(dynamic_minibatch(8, largest, {320, 320}, kNoCap), 22);  // d = 28
  EXPECT_EQ(dynamic_minibatch(8, largest, {544, 544}, kNoCap), 9);   // d = 9, 0.8 d = 7: d itself
  EXPECT_EQ(dynamic_minibatch(8, largest, {544, 544}, 8), 8);
  EXPECT_EQ(dynamic_minibatch(8, largest, {320, 320}, 20), 16);
  EXPECT_EQ(dynamic_minibatch(8, largest, {320, 320}, 6), 6);
  EXPECT_EQ(dynamic_minibatch(1, largest, {608, 608}, 0), 1);
  EXPECT_EQ(dynamic_minibatch(100'000, {40'000, 40'000}, {20'000, 20'000}, kNoCap), 320'000);
}

}  // namespace
}  // namespace lantern::train
