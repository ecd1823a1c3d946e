#include "eval/nms.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/rng.hpp"
#include "csv.hpp"

namespace lantern::eval {
namespace {

using Survivors = std::set<std::pair<int, int>>;

/// (cell, class) pairs left; the golden box index is kept in `cell`.
Survivors survivors(const DetectionList& list) {
  Survivors left;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (int c = 0; c < list.classes(); ++c) {
      if (list.probabilities(i)[static_cast<std::size_t>(c)] > 0) left.insert({list[i].cell, c});
    }
  }
  return left;
}

class GoldenNms : public ::testing::TestWithParam<int> {};

TEST_P(GoldenNms, KeepsWhatTheReferenceKeeps) {
  const auto json = nlohmann::json::parse(
      read_file(test_data(fmt::format("golden/boxes/nms_{}.json", GetParam()))));
  const int classes = json["classes"];
  DetectionList boxes(classes);
  for (const auto& row : json["boxes_x_y_w_h_objectness_prob"]) {
    const std::vector<float> v = row;
    const std::size_t i = boxes.add({.box = {v[0], v[1], v[2], v[3]},
                                     .objectness = v[4],
                                     .cell = static_cast<int>(boxes.size())});
    std::copy(v.begin() + 5, v.end(), boxes.probabilities(i).begin());
  }
  ASSERT_GE(json["results"].size(), 4U);
  for (const auto& [name, pairs] : json["results"].items()) {
    Survivors want;
    for (const auto& pair : pairs) want.insert(pair.get<std::pair<int, int>>());
    const std::string kind = name.substr(0, name.find("_0"));
    const float threshold = std::stof(name.substr(kind.size() + 1));
    DetectionList list = boxes;
    if (kind == "nms_obj") {
      suppress_by_objectness(list, threshold);
    } else {
      const auto parsed = kind == "nms_sort" ? NmsKind::kDefault : parse_nms_kind(kind);
      ASSERT_TRUE(parsed.has_value()) << name;
      suppress(list, {.kind = *parsed, .threshold = threshold, .beta = 0.6F});
    }
    EXPECT_EQ(survivors(list), want) << name;
    EXPECT_EQ(list.size(), boxes.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenNms, ::testing::Values(0, 1, 2));

TEST(Nms, EqualScoresGoByHeadAnchorCell) {
  DetectionList list(1);
  const Box box{0.5F, 0.5F, 0.2F, 0.2F};
  const std::vector<Detection> same{
      {box, 0.9F, 1, 0, 0}, {box, 0.9F, 0, 1, 0}, {box, 0.9F, 0, 0, 7}, {box, 0.9F, 0, 0, 3}};
  for (const Detection& detection : same) list.probabilities(list.add(detection))[0] = 0.5F;
  suppress(list, {});
  EXPECT_EQ(list[0].cell, 3);
  EXPECT_EQ(list.probabilities(0)[0], 0.5F);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(list.probabilities(i)[0], 0);
}

TEST(Nms, LeavesTheListByBestProbability) {
  DetectionList list(2);
  for (int i = 0; i < 5; ++i) {
    const auto offset = static_cast<float>(i);
    const std::size_t k = list.add({{offset, offset, 0.5F, 0.5F}, 0.5F, 0, 0, i});
    list.probabilities(k)[static_cast<std::size_t>(i % 2)] =
        0.1F * static_cast<float>((i * 3) % 5 + 1);
  }
  suppress(list, {});
  for (std::size_t i = 1; i < list.size(); ++i) {
    EXPECT_GE(list.best_probability(i - 1), list.best_probability(i));
  }
}

/// Every later box of a class is compared with every better one that stands: the plain definition.
TEST(Nms, EqualsThePlainDefinitionOnRandomBoxes) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Rng rng(7, "nms", 0, seed);
    DetectionList list(3);
    for (int i = 0; i < 60; ++i) {
      const std::size_t k = list.add(
          {{rng.uniform(), rng.uniform(), rng.uniform(0.1F, 0.5F), rng.uniform(0.1F, 0.5F)},
           rng.uniform(),
           0,
           0,
           i});
      for (float& p : list.probabilities(k)) p = rng.coin() ? rng.uniform() : 0;
    }
    Survivors want;
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<std::size_t> order(list.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return list.probabilities(a)[c] > list.probabilities(b)[c];
      });
      std::vector<bool> gone(list.size(), false);
      for (std::size_t a = 0; a < order.size(); ++a) {
        if (gone[a] || !(list.probabilities(order[a])[c] > 0)) continue;
        want.insert({list[order[a]].cell, static_cast<int>(c)});
        for (std::size_t b = a + 1; b < order.size(); ++b) {
          if (iou(list[order[a]].box, list[order[b]].box) > 0.45F) gone[b] = true;
        }
      }
    }
    suppress(list, {});
    EXPECT_EQ(survivors(list), want) << "seed " << seed;
  }
}

TEST(Nms, BearsNumbersThatAreNone) {
  DetectionList list(1);
  const float nan = std::nanf("");
  list.probabilities(list.add({{nan, 0, 1, 1}, nan}))[0] = nan;
  list.probabilities(list.add({{0, 0, INFINITY, INFINITY}, 0.5F}))[0] = 0.5F;
  list.probabilities(list.add({{0, 0, 1, 1}, 0.5F}))[0] = 0.4F;
  DetectionList other = list;
  suppress(list, {});
  suppress_by_objectness(other, 0.4F);
  EXPECT_EQ(list.best_probability(0), 0.5F);
  EXPECT_EQ(list.best_class(2), -1);
  suppress(other, {});
}

}  // namespace
}  // namespace lantern::eval
