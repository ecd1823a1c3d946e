#include "eval/top_k.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace lantern::eval {
namespace {

using ::testing::ElementsAre;

TEST(TopClasses, LargestFirstAndOfEqualOnesTheFirst) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores{0.1F, 0.4F, kNan, 0.4F, 0.05F};
  EXPECT_THAT(top_classes(scores, 1), ElementsAre(1));
  EXPECT_THAT(top_classes(scores, 4), ElementsAre(1, 3, 0, 4));
  EXPECT_THAT(top_classes(scores, 9), ElementsAre(1, 3, 0, 4, 2));
}

TEST(TopK, CountsByClass) {
  TopK accuracy(3, 2);
  EXPECT_EQ(accuracy.top1(), 0);
  EXPECT_EQ(accuracy.add(std::vector{0.6F, 0.3F, 0.1F}, 0), 0);  // first
  EXPECT_EQ(accuracy.add(std::vector{0.6F, 0.3F, 0.1F}, 1), 0);  // second
  EXPECT_EQ(accuracy.add(std::vector{0.6F, 0.3F, 0.1F}, 2), 0);  // neither
  EXPECT_EQ(accuracy.add(std::vector{0.2F, 0.3F, 0.5F}, 2), 2);
  EXPECT_EQ(accuracy.images(), 4);
  EXPECT_DOUBLE_EQ(accuracy.top1(), 0.5);
  EXPECT_DOUBLE_EQ(accuracy.topk(), 0.75);
  EXPECT_DOUBLE_EQ(accuracy.classes()[0].top1(), 1);
  EXPECT_DOUBLE_EQ(accuracy.classes()[1].top1(), 0);
  EXPECT_DOUBLE_EQ(accuracy.classes()[2].top1(), 0.5);
  EXPECT_EQ(TopK(3, 9).k(), 3);
}

}  // namespace
}  // namespace lantern::eval
