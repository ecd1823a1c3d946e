#include "eval/confusion.hpp"

#include <gtest/gtest.h>

#include <array>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "eval/curves.hpp"

namespace lantern::eval {
namespace {

struct Found {
  Box box;
  int class_id;
  float score;
};

DetectionList list_of(int classes, const std::vector<Found>& found) {
  DetectionList list(classes);
  for (const Found& each : found) {
    const std::size_t i = list.add({.box = each.box, .objectness = each.score});
    list.probabilities(i)[static_cast<std::size_t>(each.class_id)] = each.score;
  }
  return list;
}

constexpr Box kLeft{0.2F, 0.5F, 0.2F, 0.2F}, kRight{0.8F, 0.5F, 0.2F, 0.2F};
constexpr Box kNearLeft{0.21F, 0.5F, 0.2F, 0.2F}, kMiddle{0.5F, 0.5F, 0.1F, 0.1F};

TEST(Confusion, CountsEachKindOfMistakeOnce) {
  ConfusionMatrix matrix(2, {});
  // Found as the other class, missed, found where nothing is, too weak to count.
  matrix.add_image(list_of(2, {{kLeft, 1, 0.9F}, {kMiddle, 0, 0.5F}, {kRight, 1, 0.2F}}),
                   std::vector<Truth>{{kLeft, 0}, {kRight, 1}});
  EXPECT_EQ(matrix.at(0, 1), 1);
  EXPECT_EQ(matrix.at(1, 2), 1);
  EXPECT_EQ(matrix.at(2, 0), 1);
  std::int64_t sum = 0;
  for (int truth = 0; truth <= 2; ++truth) {
    for (int detected = 0; detected <= 2; ++detected) sum += matrix.at(truth, detected);
  }
  EXPECT_EQ(sum, 3);
}

TEST(Confusion, TheLargestOverlapWinsWhateverTheScore) {
  ConfusionMatrix matrix(2, {});
  matrix.add_image(list_of(2, {{kNearLeft, 1, 0.9F}, {kLeft, 0, 0.6F}}),
                   std::vector<Truth>{{kLeft, 0}});
  EXPECT_EQ(matrix.at(0, 0), 1);
  EXPECT_EQ(matrix.at(2, 1), 1);
}

TEST(Confusion, OfEqualOverlapsTheRightClassWins) {
  ConfusionMatrix matrix(2, {});
  matrix.add_image(list_of(2, {{kLeft, 1, 0.9F}, {kLeft, 0, 0.6F}}),
                   std::vector<Truth>{{kLeft, 0}});
  EXPECT_EQ(matrix.at(0, 0), 1);
  EXPECT_EQ(matrix.at(2, 1), 1);
}

TEST(Confusion, DifficultObjectsCountNeitherWay) {
  ConfusionMatrix matrix(2, {});
  const std::vector<Truth> truths{{kLeft, 0}, {kRight, 1}};
  matrix.add_image(list_of(2, {{kRight, 1, 0.9F}}), truths, std::vector<Truth>{{kRight, 1}});
  EXPECT_EQ(matrix.at(0, 2), 1);
  EXPECT_EQ(matrix.at(1, 1) + matrix.at(1, 2) + matrix.at(2, 1), 0);
}

TEST(Confusion, RowsAddUpToTheTruths) {
  Rng rng(1, "confusion_test");
  constexpr int kClasses = 4;
  ConfusionMatrix matrix(kClasses, {.iou_threshold = 0.3, .confidence_threshold = 0.5});
  std::array<int, kClasses> truths_of{}, found_of{};
  for (int image = 0; image < 30; ++image) {
    const auto box = [&] {
      return Box{rng.uniform(), rng.uniform(), rng.uniform(0.1F, 0.6F), rng.uniform(0.1F, 0.6F)};
    };
    const auto any_class = [&] { return static_cast<int>(rng.uniform_int(0, kClasses - 1)); };
    std::vector<Truth> truths;
    std::vector<Found> found;
    for (int i = 0; i < 5; ++i) {
      truths.push_back({box(), any_class()});
      ++truths_of[static_cast<std::size_t>(truths.back().class_id)];
      found.push_back({box(), any_class(), rng.uniform()});
      if (found.back().score > 0.5F) ++found_of[static_cast<std::size_t>(found.back().class_id)];
    }
    matrix.add_image(list_of(kClasses, found), truths);
  }
  std::int64_t paired = 0;
  for (int c = 0; c < kClasses; ++c) {
    std::int64_t row = 0, column = 0;
    for (int other = 0; other <= kClasses; ++other) {
      row += matrix.at(c, other);
      column += matrix.at(other, c);
      if (other < kClasses) paired += matrix.at(c, other);
    }
    EXPECT_EQ(row, truths_of[static_cast<std::size_t>(c)]);
    EXPECT_EQ(column, found_of[static_cast<std::size_t>(c)]);
  }
  EXPECT_GT(paired, 5);
}

TEST(Confusion, IsWrittenAsTableAndCsv) {
  ConfusionMatrix matrix(2, {});
  matrix.add_image(list_of(2, {{kLeft, 1, 0.9F}}), std::vector<Truth>{{kLeft, 0}});
  const std::vector<std::string> names{"cat", "a \"b\", c"};
  EXPECT_EQ(confusion_csv(matrix, names),
            "truth,cat,\"a \"\"b\"\", c\",(background)\ncat,0,1,0\n\"a \"\"b\"\", "
            "c\",0,0,0\n(background),0,0,0\n");
  const auto blanks = [](std::size_t count) { return std::string(count, ' '); };
  EXPECT_NE(
      confusion_text(matrix, names)
          .find("\n cat" + blanks(9) + blanks(4) + "0" + blanks(9) + "1" + blanks(13) + "0\n"),
      std::string::npos)
      << confusion_text(matrix, names);
  EXPECT_THROW(ConfusionMatrix(ConfusionMatrix::kMostClasses + 1, {}), Error);
}

TEST(Curves, MeanOfTheMeanCurveIsTheMeanAveragePrecision) {
  AveragePrecision metric(3);
  Rng rng(2, "curves_test");
  for (int image = 0; image < 20; ++image) {
    std::vector<Truth> truths;
    std::vector<Found> found;
    for (int i = 0; i < 4; ++i) {
      const Box box{rng.uniform(), rng.uniform(), 0.2F, 0.2F};
      const auto class_id = static_cast<int>(rng.uniform_int(0, 1));  // never class 2
      truths.push_back({box, class_id});
      if (rng.coin()) found.push_back({box, class_id, rng.uniform(0.01F, 1)});
      found.push_back(
          {{rng.uniform(), rng.uniform(), 0.2F, 0.2F}, class_id, rng.uniform(0.01F, 1)});
    }
    metric.add_image(list_of(3, found), truths);
  }
  const MapResult result = metric.result({.points = 101});
  double sum = 0;
  const auto curve = mean_precision_curve(result);
  ASSERT_EQ(curve.size(), 101U);
  for (const CurveXy& point : curve) sum += point.y;
  EXPECT_NEAR(sum / 101, result.map_with_truths, 1e-12);
  EXPECT_GT(result.map_with_truths, 0.1);
}

TEST(Curves, GoThroughEveryTruePositive) {
  const ClassResult one{.truths = 4,
                        .curve = {{.score = 0.75F, .precision = 1, .recall = 0.25},
                                  {.score = 0.5F, .precision = 0.5, .recall = 0.5}}};
  EXPECT_EQ(precision_recall_curve(one),
            (std::vector<CurveXy>{{0, 1}, {0.25, 1}, {0.5, 0.5}, {0.5, 0}}));
  EXPECT_EQ(f1_curve(one), (std::vector<CurveXy>{{0, 0.5}, {0.5, 0.5}, {0.75, 0.4}, {0.75, 0}}));
  EXPECT_TRUE(precision_recall_curve({}).empty());
  EXPECT_TRUE(f1_curve({}).empty());
}

}  // namespace
}  // namespace lantern::eval
