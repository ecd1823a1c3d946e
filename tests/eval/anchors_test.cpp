#include "eval/anchors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/rng.hpp"
#include "eval/anchor_report.hpp"

namespace lantern::eval {
namespace {

std::vector<BoxSize> random_sizes(std::uint64_t seed, int count) {
  Rng rng(seed, "anchors_test");
  std::vector<BoxSize> boxes;
  for (int i = 0; i < count; ++i) {
    const double scale = std::exp(rng.uniform(1.5F, 6.0F));
    boxes.push_back({scale * rng.uniform(0.5F, 2.0F), scale * rng.uniform(0.5F, 2.0F)});
  }
  return boxes;
}

double average_iou(const std::vector<BoxSize>& boxes, const std::vector<BoxSize>& anchors) {
  double sum = 0;
  for (const BoxSize& box : boxes) {
    double best = 0;
    for (const BoxSize& anchor : anchors) {
      const double common = std::min(box.w, anchor.w) * std::min(box.h, anchor.h);
      best = std::max(best, common / (box.w * box.h + anchor.w * anchor.h - common));
    }
    sum += best;
  }
  return sum / static_cast<double>(boxes.size());
}

TEST(Anchors, AreTheMiddlesOfClearClusters) {
  const std::vector<BoxSize> middles{{10, 14}, {52, 30}, {60, 120}, {250, 200}};
  Rng rng(1, "anchors_test");
  std::vector<BoxSize> boxes, means(middles.size());
  for (int i = 0; i < 400; ++i) {
    const auto c = static_cast<std::size_t>(i) % middles.size();
    boxes.push_back(
        {middles[c].w * rng.uniform(0.95F, 1.05F), middles[c].h * rng.uniform(0.95F, 1.05F)});
    means[c].w += boxes.back().w / 100;
    means[c].h += boxes.back().h / 100;
  }
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto anchors = cluster_anchors(boxes, {.clusters = 4, .seed = seed});
    ASSERT_EQ(anchors.size(), 4U);
    for (std::size_t c = 0; c < 4; ++c) {
      // A box near the mean can fit even better than the mean.
      EXPECT_NEAR(anchors[c].w, means[c].w, 0.03 * means[c].w);
      EXPECT_NEAR(anchors[c].h, means[c].h, 0.03 * means[c].h);
    }
  }
}

TEST(Anchors, DependOnTheSeedAndOnNothingElse) {
  std::vector<BoxSize> boxes = random_sizes(2, 300);
  const AnchorOptions options{.clusters = 9, .seed = 5, .restarts = 3};
  const auto anchors = cluster_anchors(boxes, options);
  EXPECT_EQ(cluster_anchors(boxes, options), anchors);
  std::reverse(boxes.begin(), boxes.end());
  EXPECT_EQ(cluster_anchors(boxes, options), anchors) << "whatever the order of the list";
  // One start each: other seeds end elsewhere.
  int different = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    different +=
        cluster_anchors(boxes, {.clusters = 9, .seed = seed, .restarts = 1}) != anchors ? 1 : 0;
  }
  EXPECT_GT(different, 2);
}

TEST(Anchors, TheBestStartIsKept) {
  const std::vector<BoxSize> boxes = random_sizes(3, 200);
  double before = 0, first = 0, last = 0;
  for (int restarts = 1; restarts <= 12; ++restarts) {
    const auto anchors = cluster_anchors(boxes, {.clusters = 6, .seed = 1, .restarts = restarts});
    const double iou = average_iou(boxes, anchors);
    EXPECT_GE(iou, before - 1e-12) << restarts;
    before = iou;
    if (restarts == 1) first = iou;
    last = iou;
    EXPECT_TRUE(std::is_sorted(anchors.begin(), anchors.end(),
                               [](const auto& a, const auto& b) { return a.w * a.h < b.w * b.h; }));
  }
  EXPECT_GT(last, first) << "one of the starts is better than the first";
  // Anchors put at random boxes are no match for it.
  const std::vector<BoxSize> some(boxes.begin(), boxes.begin() + 6);
  EXPECT_GT(last, average_iou(boxes, some) + 0.02);
}

TEST(Anchors, EqualBoxesGiveOneAnchor) {
  const std::vector<BoxSize> boxes(20, {16, 16});
  EXPECT_EQ(cluster_anchors(boxes, {.clusters = 9}), (std::vector<BoxSize>{{16, 16}}));
  EXPECT_EQ(distinct_sizes(boxes), 1);
  std::vector<BoxSize> two(boxes);
  two.resize(21, {32, 8});
  EXPECT_EQ(cluster_anchors(two, {.clusters = 9}).size(), 2U);
  EXPECT_EQ(distinct_sizes(two), 2);
  EXPECT_TRUE(cluster_anchors({}, {.clusters = 3}).empty());
}

TEST(Anchors, FitIsWhatCountingGives) {
  const std::vector<BoxSize> boxes = random_sizes(4, 250);
  const std::vector<BoxSize> anchors{{10, 10}, {10, 10}, {40, 60}, {200, 150}};
  const AnchorFit fit = fit_anchors(boxes, anchors);
  EXPECT_NEAR(fit.average_iou, average_iou(boxes, anchors), 1e-12);
  int reached = 0;
  for (const BoxSize& box : boxes) {
    reached += std::ranges::any_of(
        anchors, [&](const BoxSize& anchor) { return centred_iou(box, anchor) > 0.5; });
  }
  EXPECT_NEAR(fit.recall, reached / 250.0, 1e-12);
  EXPECT_GT(reached, 0);
  EXPECT_LT(reached, 250);
  ASSERT_EQ(fit.boxes.size(), 4U);
  EXPECT_EQ(fit.boxes[0] + fit.boxes[2] + fit.boxes[3], 250);
  EXPECT_EQ(fit.boxes[1], 0) << "of two equal anchors the first counts";
}

TEST(Anchors, MasksFollowTheStride) {
  const std::vector<BoxSize> anchors{{12, 16},  {19, 36},   {40, 28},   {36, 75},  {76, 55},
                                     {72, 146}, {142, 110}, {192, 243}, {459, 401}};
  using Masks = std::vector<std::vector<int>>;
  EXPECT_EQ(propose_masks(anchors, std::vector{8, 16, 32}),
            (Masks{{0, 1}, {2, 3}, {4, 5, 6, 7, 8}}));
  EXPECT_EQ(propose_masks(anchors, std::vector{32, 8}), (Masks{{2, 3, 4, 5, 6, 7, 8}, {0, 1}}));
  const std::vector<BoxSize> large(3, {300, 300}), small(3, {5, 5});
  EXPECT_EQ(propose_masks(large, std::vector{8, 16, 32}), (Masks{{0}, {1}, {2}}));
  EXPECT_EQ(propose_masks(small, std::vector{8, 16, 32}), (Masks{{0}, {1}, {2}}));
  EXPECT_EQ(propose_masks(std::span(large).first(1), std::vector{8, 16, 32}), (Masks{{}, {}, {0}}));
}

TEST(Anchors, AreRoundedAsTheyAreWritten) {
  const std::vector<BoxSize> sizes{{0.2, 10.4}, {10.6, 200}};
  EXPECT_EQ(rounded_anchors(sizes, 416), (std::vector<BoxSize>{{1, 10}, {11, 200}}));
  const auto cells = rounded_anchors(std::vector<BoxSize>{{0.123456, 1e-9}}, 13);
  EXPECT_NEAR(cells[0].w, 0.1235, 1e-12);
  EXPECT_NEAR(cells[0].h, 0.0001, 1e-12);
}

AnchorReport some_report() {
  AnchorReport report{.width = 64,
                      .height = 64,
                      .wanted = 3,
                      .images = 2,
                      .boxes = 4,
                      .distinct = 2,
                      .anchors = {{8, 8}, {32, 132}}};
  report.fit = {.average_iou = 0.75, .recall = 0.5, .boxes = {3, 1}};
  report.strides = {16, 8};
  report.masks = {{1}, {0}};
  report.class_boxes = {4, 0};
  return report;
}

TEST(AnchorReport, WritesWhatDarknetWrites) {
  AnchorReport report = some_report();
  EXPECT_EQ(anchors_text(report), "  8,  8,  32,132");
  EXPECT_EQ(counters_text(report), "counters_per_class = 4, 0");
  const std::string text = anchor_report_text(report);
  EXPECT_NE(text.find(" avg IoU = 75.00 % \n"), std::string::npos) << text;
  EXPECT_NE(text.find("anchors =   8,  8,  32,132\n"), std::string::npos) << text;
  EXPECT_NE(text.find("only 2 distinct sizes: 2 anchors instead of 3"), std::string::npos) << text;
  EXPECT_NE(text.find("head of stride 8: mask = 0  (75.00 % of the boxes;"), std::string::npos);
  report.width = 32;
  EXPECT_EQ(anchors_text(report), "8.0000,8.0000, 32.0000,132.0000");
}

TEST(AnchorReport, JsonHoldsEveryFigure) {
  const auto json = nlohmann::json::parse(anchor_report_json(some_report()));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["average_iou"], 0.75);
  EXPECT_EQ(json["recall50"], 0.5);
  EXPECT_EQ(json["anchors"][1]["height"], 132);
  EXPECT_EQ(json["anchors"][0]["boxes"], 3);
  EXPECT_EQ(json["masks"][0]["stride"], 16);
  EXPECT_EQ(json["masks"][0]["boxes"], 1);
  EXPECT_EQ(json["counters_per_class"][1], 0);
  EXPECT_FALSE(json.contains("cfg"));
}

}  // namespace
}  // namespace lantern::eval
