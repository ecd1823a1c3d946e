#include "eval/decode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "csv.hpp"
#include "eval/nms.hpp"

namespace lantern::eval {
namespace {

struct Case {
  std::string name;
  std::vector<YoloHead> heads;
  NmsKind nms = NmsKind::kDefault;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

/// Head of a golden case: 3 classes, 32x32 input.
YoloHead yolo(std::vector<int> mask, int grid, bool new_coords = false) {
  return {.classes = 3,
          .anchors = {{5, 7}, {10, 14}, {23, 27}, {12, 30}},
          .mask = std::move(mask),
          .grid_w = grid,
          .grid_h = grid,
          .new_coords = new_coords};
}

std::vector<Case> cases() {
  return {{"yolo_two_heads", {yolo({2, 3}, 4), yolo({0, 1}, 8)}},
          {"yolo_new_coords", {yolo({0, 1, 2}, 4, true)}},
          {"yolo_scale_xy", {yolo({0, 1, 2}, 4)}},
          {"yolo_nms_diou", {yolo({0, 1, 2}, 4)}, NmsKind::kDiou},
          {"yolo_nms_greedy", {yolo({0, 1, 2}, 4)}, NmsKind::kGreedy},
          {"region_reorg",
           {{.kind = YoloHead::Kind::kRegion,
             .classes = 3,
             .anchors = {{1.1F, 1.5F}, {2.3F, 2.8F}},
             .grid_w = 4,
             .grid_h = 4}}}};
}

struct Row {
  int class_id;
  float probability;
  Box box;
  float objectness;
};

std::vector<Row> rows_of(const DetectionList& list) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (int c = 0; c < list.classes(); ++c) {
      const float p = list.probabilities(i)[static_cast<std::size_t>(c)];
      if (p > 0) rows.push_back({c, p, list[i].box, list[i].objectness});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.class_id != b.class_id ? a.class_id < b.class_id : a.probability > b.probability;
  });
  return rows;
}

class GoldenHead : public ::testing::TestWithParam<Case> {
 protected:
  DetectionList decode_all(std::optional<std::pair<int, int>> letterboxed = std::nullopt) const {
    const std::string bytes = read_file(test_data("eval/heads/" + GetParam().name + ".f32"));
    std::vector<float> output(bytes.size() / 4);
    std::memcpy(output.data(), bytes.data(), bytes.size());
    DetectionList list(3);
    std::size_t start = 0;
    int index = 0;
    for (const YoloHead& head : GetParam().heads) {
      const auto size = static_cast<std::size_t>(head.output_size());
      decode(head, std::span(output).subspan(start, size),
             {.net_w = 32,
              .net_h = 32,
              .threshold = 0.25F,
              .head = index++,
              .letterboxed_image = letterboxed},
             list);
      start += size;
    }
    EXPECT_EQ(start, output.size());
    return list;
  }

  void expect_rows(const std::string& key, const DetectionList& list, float scale_x,
                   float scale_y) const {
    const std::vector<Row> rows = rows_of(list);
    std::size_t k = 0;
    for (const auto& want : read_csv(test_data("eval/heads/" + GetParam().name + ".csv"))) {
      if (want[0] != key) continue;
      ASSERT_LT(k, rows.size()) << key;
      const Row& row = rows[k++];
      EXPECT_EQ(row.class_id, std::stoi(want[1])) << key << " row " << k;
      EXPECT_NEAR(row.probability, std::stof(want[2]), 1e-6) << key << " row " << k;
      EXPECT_NEAR(row.box.x * scale_x, std::stof(want[3]), 3e-6 * scale_x) << key << " row " << k;
      EXPECT_NEAR(row.box.y * scale_y, std::stof(want[4]), 3e-6 * scale_y) << key << " row " << k;
      EXPECT_NEAR(row.box.w * scale_x, std::stof(want[5]), 3e-6 * scale_x) << key << " row " << k;
      EXPECT_NEAR(row.box.h * scale_y, std::stof(want[6]), 3e-6 * scale_y) << key << " row " << k;
      EXPECT_NEAR(row.objectness, std::stof(want[7]), 1e-6) << key << " row " << k;
    }
    EXPECT_GT(k, 0U) << key;
    EXPECT_EQ(k, rows.size()) << key;
  }
};

TEST_P(GoldenHead, GivesTheReferenceDetections) {
  const NmsOptions nms{.kind = GetParam().nms, .threshold = 0.45F, .beta = 0.6F};
  DetectionList list = decode_all();
  expect_rows("image0_no_nms", list, 1, 1);
  suppress(list, nms);
  expect_rows("image0_rel", list, 1, 1);
  expect_rows("image0_abs_640x480", list, 640, 480);
  DetectionList letterboxed = decode_all(std::pair{640, 480});
  suppress(letterboxed, nms);
  expect_rows("image0_letterbox_640x480", letterboxed, 1, 1);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenHead, ::testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

TEST(Decode, GaussianUsesTheMeanSigmaAndTheCorner) {
  YoloHead head{.kind = YoloHead::Kind::kGaussianYolo,
                .classes = 1,
                .anchors = {{8, 16}},
                .grid_w = 1,
                .grid_h = 1};
  //                               x    sx    y    sy   w  sw   h  sh   obj  class
  const std::vector<float> output{0.5F, 0.1F, 0.4F, 0.2F, 0, 0.3F, 0, 0.4F, 0.8F, 0.9F};
  const DecodeOptions options{.net_w = 32, .net_h = 32};
  DetectionList list(1);
  decode(head, output, options, list);
  head.point = YoloHead::Point::kLeftTop;
  decode(head, output, options, list);
  head.point = YoloHead::Point::kRightBottom;
  decode(head, output, options, list);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_FLOAT_EQ(list.probabilities(0)[0], 0.8F * 0.9F * 0.75F);
  EXPECT_EQ(list[0].box, (Box{0.5F, 0.4F, 0.25F, 0.5F}));
  EXPECT_FLOAT_EQ(list[1].box.x, 0.625F);
  EXPECT_FLOAT_EQ(list[1].box.y, 0.65F);
  EXPECT_FLOAT_EQ(list[2].box.x, 0.375F);
  EXPECT_FLOAT_EQ(list[2].box.y, 0.15F);
}

TEST(Decode, ATreeGivesTheDeepestClassAboveOneHalf) {
  YoloHead head{.kind = YoloHead::Kind::kRegion,
                .classes = 4,
                .anchors = {{1, 1}},
                .grid_w = 1,
                .grid_h = 1,
                .tree_parents = {-1, -1, 0, 0}};
  //                              x  y  w  h  obj   root  root  child child
  const std::vector<float> output{0, 0, 0, 0, 0.3F, 0.9F, 0.1F, 0.7F, 0.3F};
  DetectionList list(4);
  decode(head, output, {.net_w = 32, .net_h = 32}, list);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list.best_class(0), 2);
  EXPECT_FLOAT_EQ(list.probabilities(0)[2], 0.63F);
  EXPECT_EQ(list.probabilities(0)[0], 0);
  head.tree_parents = {-1, 2, 0, 0};
  EXPECT_THROW(decode(head, output, {.net_w = 32, .net_h = 32}, list), Error);
}

TEST(Decode, RegionSkipsCoordinatesBehindTheClasses) {
  YoloHead head{
      .kind = YoloHead::Kind::kRegion, .classes = 1, .anchors = {{1, 1}}, .grid_w = 2, .grid_h = 1};
  const std::vector<float> four{0, 0, 0, 0, 0.5F, 0.9F, 0, 0, 0, 0, 0.6F, 0.8F};
  const std::vector<float> six{0, 0, 0, 0, 0.5F, 0.9F, 7, 7, 0, 0, 0, 0, 0.6F, 0.8F, 7, 7};
  DetectionList want(1);
  DetectionList list(1);
  decode(head, four, {.net_w = 32, .net_h = 32}, want);
  head.coords = 6;
  decode(head, six, {.net_w = 32, .net_h = 32}, list);
  ASSERT_EQ(list.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(list[i].box.x, want[i].box.x);
    EXPECT_EQ(list.probabilities(i)[0], want.probabilities(i)[0]);
  }
}

TEST(Decode, DetectionListsEveryBox) {
  const YoloHead head{.kind = YoloHead::Kind::kDetection,
                      .classes = 2,
                      .grid_w = 2,
                      .grid_h = 1,
                      .boxes_per_cell = 1,
                      .sqrt_size = true};
  // classes of the 2 cells; confidences; boxes
  const std::vector<float> output{0.1F, 0.9F, 0.8F, 0.2F, 0.01F, 0.5F, 0.5F,
                                  0.5F, 0.5F, 0.5F, 0.5F, 0.25F, 0.5F, 0.2F};
  DetectionList list(2);
  decode(head, output, {.net_w = 32, .net_h = 32, .threshold = 0.2F}, list);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list.best_class(0), -1);
  EXPECT_FLOAT_EQ(list.probabilities(1)[0], 0.4F);
  EXPECT_FLOAT_EQ(list[1].box.x, 0.75F);
  EXPECT_FLOAT_EQ(list[1].box.h, 0.04F);
}

TEST(Decode, BearsAnyNumbers) {
  const YoloHead head = yolo({0, 1, 2}, 4);
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Rng rng(3, "decode", 0, seed);
    std::vector<float> output(static_cast<std::size_t>(head.output_size()));
    for (float& value : output) {
      const std::uint32_t bits = rng.next_u32();
      std::memcpy(&value, &bits, 4);
    }
    DetectionList list(3);
    decode(head, output, {.net_w = 32, .net_h = 32}, list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_TRUE(std::isfinite(list[i].box.w)) << "seed " << seed;
      EXPECT_TRUE(std::isfinite(list[i].box.x)) << "seed " << seed;
    }
    suppress(list, {});
  }
}

TEST(Decode, RefusesSizesThatDoNotAgree) {
  const YoloHead head = yolo({0, 1, 2}, 4);
  std::vector<float> output(static_cast<std::size_t>(head.output_size()));
  DetectionList list(3);
  DetectionList other(4);
  const DecodeOptions options{.net_w = 32, .net_h = 32};
  EXPECT_THROW(decode(head, std::span(output).first(5), options, list), Error);
  EXPECT_THROW(decode(head, output, options, other), Error);
  EXPECT_THROW(decode(head, output, {}, list), Error);
  EXPECT_THROW(decode(yolo({0, 1, 4}, 4), output, options, list), Error);
}

}  // namespace
}  // namespace lantern::eval
