#include "eval/box.hpp"

#include <gtest/gtest.h>

#include "csv.hpp"

namespace lantern::eval {
namespace {

TEST(Box, MetricsMatchTheReference) {
  const auto rows = read_csv(test_data("golden/boxes/box_metrics.csv"));
  ASSERT_GT(rows.size(), 100U);
  for (const auto& row : rows) {
    std::vector<float> v;
    for (int i = 0; i < 14; ++i) v.push_back(std::stof(row[static_cast<std::size_t>(i)]));
    const Box a{v[0], v[1], v[2], v[3]};
    const Box b{v[4], v[5], v[6], v[7]};
    constexpr float kTolerance = 2e-6F;
    EXPECT_NEAR(iou(a, b), v[8], kTolerance);
    EXPECT_NEAR(giou(a, b), v[9], kTolerance);
    EXPECT_NEAR(diou(a, b), v[10], kTolerance);
    EXPECT_NEAR(ciou(a, b), v[11], kTolerance);
    EXPECT_NEAR(diou(a, b, 0.6F), v[12], kTolerance);
    EXPECT_NEAR(diou(a, b, 1.0F), v[13], kTolerance);
  }
}

TEST(Box, ABoxOfNoSizeOverlapsNothing) {
  const Box point{0.5F, 0.5F, 0, 0};
  EXPECT_EQ(iou(point, point), 0);
  EXPECT_EQ(giou(point, point), 0);
  EXPECT_EQ(diou(point, point), 0);
  EXPECT_EQ(ciou(point, point), 0);
  EXPECT_EQ(iou({0.2F, 0.2F, 0.2F, 0.2F}, {0.8F, 0.8F, 0.2F, 0.2F}), 0);
}

TEST(Box, EqualBoxesHaveOne) {
  const Box box{0.25F, 0.5F, 0.5F, 0.25F};
  EXPECT_EQ(iou(box, box), 1);
  EXPECT_EQ(giou(box, box), 1);
  EXPECT_EQ(diou(box, box), 1);
  EXPECT_EQ(ciou(box, box), 1);
}

}  // namespace
}  // namespace lantern::eval
