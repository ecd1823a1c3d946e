#include "eval/average_precision.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "csv.hpp"
#include "eval/map_report.hpp"

namespace lantern::eval {
namespace {

std::vector<Truth> read_labels(const std::filesystem::path& path) {
  std::vector<Truth> truths;
  const std::string text = read_file(path);
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    std::vector<float> v;
    for (const std::string_view field : split(trim(line), ' '))
      v.push_back(std::stof(std::string(field)));
    truths.push_back({{v[1], v[2], v[3], v[4]}, static_cast<int>(v[0])});
  }
  return truths;
}

AveragePrecision golden_set() {
  const auto rows = read_csv(test_data("golden/map/detections.csv"));
  AveragePrecision metric(4);
  for (int image = 0; image < 14; ++image) {
    DetectionList list(4);
    for (const auto& row : rows) {
      if (std::stoi(row[0]) != image) continue;
      const std::size_t i = list.add(
          {.box = {std::stof(row[3]), std::stof(row[4]), std::stof(row[5]), std::stof(row[6])},
           .objectness = 1});
      list.probabilities(i)[std::stoul(row[1])] = std::stof(row[2]);
    }
    metric.add_image(list,
                     read_labels(test_data(fmt::format("golden/map/images/{:03}.txt", image))));
  }
  return metric;
}

TEST(AveragePrecision, MatchesTheReferenceInEverySetting) {
  const AveragePrecision metric = golden_set();
  const auto settings = nlohmann::json::parse(read_file(test_data("golden/map/expected.json")));
  ASSERT_EQ(settings.size(), 6U);
  for (const auto& want : settings) {
    const MapResult result = metric.result({.iou_threshold = want["iou_thresh"],
                                            .confidence_threshold = want["conf_thresh"],
                                            .points = want["map_points"]});
    SCOPED_TRACE(want["iou_thresh"].dump() + " points " + want["map_points"].dump());
    EXPECT_NEAR(result.map, want["mAP"].get<double>(), 1e-6);
    EXPECT_EQ(result.detections_count, want["detections_count"]);
    EXPECT_EQ(result.truths, want["truth_count"]);
    // Darknet: counts at the threshold follow its list order; in the setting with IoU 0.3 they
    // differ from ours by score.
    const bool is_by_list_order = want["iou_thresh"] == 0.3;
    for (std::size_t c = 0; c < 4; ++c) {
      const auto& one = want["per_class"][c];
      EXPECT_NEAR(100 * result.classes[c].ap, one["ap_percent"].get<double>(), 1e-4);
      if (is_by_list_order) continue;
      EXPECT_EQ(result.classes[c].tp, one["tp"]);
      EXPECT_EQ(result.classes[c].fp, one["fp"]);
    }
    EXPECT_EQ(result.tp, is_by_list_order ? 20 : want["tp"].get<int>());
    EXPECT_EQ(result.fp, is_by_list_order ? 6 : want["fp"].get<int>());
    EXPECT_NEAR(100 * result.average_iou,
                is_by_list_order ? 58.255 : want["average_iou_percent"].get<double>(),
                is_by_list_order ? 1e-3 : 1e-4);
    if (is_by_list_order) continue;
    EXPECT_EQ(result.fn, want["fn"]);
    EXPECT_NEAR(result.precision, want["precision"].get<double>(), 1e-6);
    EXPECT_NEAR(result.recall, want["recall"].get<double>(), 1e-6);
    EXPECT_NEAR(result.f1, want["f1"].get<double>(), 1e-6);
  }
}

/// Rows that another program's `detector valid` gave for 49 photographs, and the figures computed
/// from them elsewhere.
TEST(AveragePrecision, MatchesPublishedFiguresOnPhotographs) {
  const std::filesystem::path shared = std::filesystem::path(LANTERN_SOURCE_DIR) / "../shared";
  const auto expected = shared / "weights/expected";
  if (!std::filesystem::exists(expected / "coco-cc-valid-map.json")) {
    GTEST_SKIP() << "no shared data here";
  }
  const auto parse = [](const std::filesystem::path& path) {
    return nlohmann::json::parse(read_file(path));
  };
  const auto annotations = parse(shared / "data/coco-cc/annotations/instances_val2017_cc.json");
  std::map<int, int> class_of;  // category number -> class
  for (const auto& category : annotations["categories"]) class_of[category["id"]] = 0;
  int next = 0;
  for (auto& [category, class_id] : class_of) class_id = next++;
  ASSERT_EQ(next, 80);
  std::map<int, DetectionList> lists;
  std::map<int, std::pair<float, float>> sizes;
  for (const auto& image : annotations["images"]) {
    sizes[image["id"]] = {image["width"], image["height"]};
    lists.emplace(image["id"], DetectionList(80));
  }
  for (const auto& row : parse(expected / "coco-cc-valid-yolo-fastest-1.1-darknet2018.json")) {
    const std::vector<float> b = row["bbox"];
    const auto [width, height] = sizes.at(row["image_id"]);
    DetectionList& list = lists.at(row["image_id"]);
    const std::size_t i = list.add({.box = {(b[0] + b[2] / 2) / width, (b[1] + b[3] / 2) / height,
                                            b[2] / width, b[3] / height},
                                    .objectness = 1});
    const auto class_id = static_cast<std::size_t>(class_of.at(row["category_id"]));
    list.probabilities(i)[class_id] = row["score"];
  }
  AveragePrecision metric(80);
  for (const auto& [id, list] : lists) {
    const auto label = shared / "data/coco-cc/labels/val2017" / fmt::format("{:012}.txt", id);
    metric.add_image(list, read_labels(label));
  }
  const auto want =
      parse(expected / "coco-cc-valid-map.json")["yolo-fastest-1.1"]["darknet-2018-letterbox"];
  const MapResult result = metric.result();
  EXPECT_EQ(result.truths, want["ground_truth_boxes"]);
  EXPECT_EQ(80 - result.classes_without_truth, want["present_classes"]);
  EXPECT_NEAR(result.map_with_truths, want["mAP50_over_present_classes"].get<double>(), 1e-4);
  EXPECT_EQ(result.tp, want["tp_at_0_25"]);
  EXPECT_EQ(result.fp, want["fp_at_0_25"]);
  EXPECT_NEAR(result.average_iou * static_cast<double>(result.tp + result.fp) /
                  static_cast<double>(result.tp),
              want["mean_iou_of_tp"].get<double>(), 1e-4);
}

DetectionList one_class(const std::vector<std::pair<float, Box>>& boxes) {
  DetectionList list(1);
  for (const auto& [score, box] : boxes) {
    list.probabilities(list.add({.box = box, .objectness = score}))[0] = score;
  }
  return list;
}

constexpr Box kBox{0.5F, 0.5F, 0.5F, 0.5F};
constexpr Box kElsewhere{0.1F, 0.1F, 0.05F, 0.05F};

TEST(AveragePrecision, APerfectDetectorOnOneImageHasOne) {
  AveragePrecision metric(1);
  const std::vector<Truth> truths{{kBox, 0}};
  metric.add_image(one_class({{0.98F, kBox}}), truths);
  for (const int points : {0, 11, 101}) {
    const MapResult result = metric.result({.points = points});
    EXPECT_EQ(result.map, 1);
    EXPECT_EQ(result.precision, 1);
    EXPECT_EQ(result.recall, 1);
    EXPECT_EQ(result.f1, 1);
    EXPECT_EQ(result.tp, 1);
    EXPECT_EQ(result.fp, 0);
    EXPECT_EQ(result.fn, 0);
    EXPECT_EQ(result.average_iou, 1);
  }
}

TEST(AveragePrecision, ASecondHitOfOneTruthIsFalse) {
  AveragePrecision metric(1);
  const std::vector<Truth> truths{{kBox, 0}, {kElsewhere, 0}};
  // The weaker detection comes first in the list: the score decides, not the order.
  metric.add_image(one_class({{0.5F, kBox}, {0.9F, kBox}, {0.3F, kElsewhere}}), truths);
  const MapResult result = metric.result();
  EXPECT_EQ(result.tp, 2);
  EXPECT_EQ(result.fp, 1);
  ASSERT_EQ(result.classes[0].curve.size(), 2U);
  EXPECT_EQ(result.classes[0].curve[0].score, 0.9F);
  // Recall 1/2 at precision 1, recall 1 at 2/3.
  EXPECT_NEAR(result.map, 0.5 + 0.5 * 2 / 3, 1e-12);
}

TEST(AveragePrecision, RecallPointsAreComparedExactly) {
  // 10 truths, 3 found: recall 0.3 reaches the point 3/10, so 4 of 11 points count.
  AveragePrecision metric(1);
  for (int i = 0; i < 10; ++i) {
    const std::vector<Truth> truths{{kBox, 0}};
    metric.add_image(i < 3 ? one_class({{0.9F, kBox}}) : DetectionList(1), truths);
  }
  EXPECT_NEAR(metric.result({.points = 11}).map, 4.0 / 11, 1e-12);
  EXPECT_NEAR(metric.result({.points = 101}).map, 31.0 / 101, 1e-12);
  EXPECT_NEAR(metric.result({.points = 1}).map, 1, 1e-12);
}

TEST(AveragePrecision, DifficultObjectsCountNeitherWay) {
  const std::vector<Truth> truths{{kBox, 0}, {kElsewhere, 0}};
  const std::vector<Truth> difficult{{kElsewhere, 0}};
  AveragePrecision metric(1);
  metric.add_image(one_class({{0.9F, kElsewhere}, {0.8F, kBox}}), truths, difficult);
  const MapResult result = metric.result();
  EXPECT_EQ(result.truths, 1);
  EXPECT_EQ(result.tp, 1);
  EXPECT_EQ(result.fp, 0);
  EXPECT_EQ(result.detections_count, 1);
  EXPECT_EQ(result.map, 1);
}

TEST(AveragePrecision, EmptyListsGiveZeroAndNeverNan) {
  const std::vector<std::string> names{"a", "b"};
  AveragePrecision metric(2);
  for (int round = 0; round < 2; ++round) {
    for (const int points : {0, 11}) {
      const MapResult result = metric.result({.points = points});
      EXPECT_EQ(result.map, 0);
      EXPECT_EQ(result.precision, 0);
      EXPECT_EQ(result.recall, 0);
      EXPECT_EQ(result.f1, 0);
      EXPECT_EQ(result.average_iou, 0);
      const std::string text = map_report_text(result, names);
      EXPECT_EQ(text.find("nan"), std::string::npos) << text;
      EXPECT_NE(text.find("0 truth boxes"), std::string::npos) << text;
      EXPECT_NE(text.find("name = a, ap = - "), std::string::npos) << text;
    }
    metric.add_image(DetectionList(2), {});
  }
  EXPECT_EQ(AveragePrecision(0).result().map, 0);
  EXPECT_THROW(metric.result({.points = -1}), Error);
}

TEST(AveragePrecision, LeavesOutTruthsOutOfRange) {
  AveragePrecision metric(1);
  const std::vector<Truth> truths{{kBox, 0}, {kBox, 1}, {kBox, -3}};
  metric.add_image(one_class({{0.9F, kBox}}), truths);
  const MapResult result = metric.result();
  EXPECT_EQ(result.truths, 1);
  EXPECT_EQ(result.ignored_truths, 2);
}

TEST(MapReport, PrintsTheLinesScriptsRead) {
  MapResult result;
  result.classes = {{.ap = 0.6321, .truths = 71, .entries = 100, .tp = 50, .fp = 7}};
  result.map = result.map_with_truths = 0.6321;
  result.detections_count = 12345;
  result.truths = 678;
  result.tp = 50;
  result.fp = 7;
  result.fn = 21;
  result.precision = 0.877;
  result.recall = 0.704;
  result.f1 = 0.781;
  result.average_iou = 0.689;
  const std::vector<std::string> names{"person"};
  EXPECT_EQ(map_report_text(result, names),
            " detections_count = 12345, unique_truth_count = 678\n"
            "class_id = 0, name = person, ap = 63.21%   \t (TP = 50, FP = 7)\n"
            " for conf_thresh = 0.25, precision = 0.88, recall = 0.70, F1-score = 0.78\n"
            " for conf_thresh = 0.25, TP = 50, FP = 7, FN = 21, average IoU = 68.90 %\n"
            "\n"
            " IoU threshold = 50 %, used Area-Under-Curve for each unique Recall\n"
            " mean average precision (mAP@0.50) = 0.632100, or 63.21 %\n");
  result.options.points = 11;
  CocoResult coco;
  coco.numbers[0] = 0.4;
  const std::string text = map_report_text(result, names, {.coco = &coco});
  EXPECT_NE(text.find("used 11 Recall-points\n"), std::string::npos);
  EXPECT_NE(text.find("(mAP@0.50:0.95) = 0.400000, or 40.00 %"), std::string::npos);
}

TEST(MapReport, JsonHoldsEveryFigure) {
  const std::vector<std::string> names{"a", "b\"", "c", "d"};
  const AveragePrecision metric = golden_set();
  CocoResult coco{.class_ap = {0.3, 0.2, 0.4, std::nullopt}};
  coco.numbers[0] = 0.3;
  ConfusionMatrix confusion(4, {});
  confusion.add_image(DetectionList(4), std::vector<Truth>{{{0.5F, 0.5F, 0.1F, 0.1F}, 2}});
  const auto json = nlohmann::json::parse(map_report_json(
      metric.result(), names, {.coco = &coco, .confusion = &confusion, .curves = true}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_NEAR(json["map50"].get<double>(), 0.575935543, 1e-6);
  EXPECT_NEAR(json["map_with_truths"].get<double>(), 0.575935543 * 4 / 3, 1e-6);
  EXPECT_EQ(json["map50_95"], 0.3);
  EXPECT_EQ(json["coco"].size(), 12U);
  EXPECT_EQ(json["coco"]["ap"], 0.3);
  EXPECT_TRUE(json["coco"]["ar_small"].is_null());
  EXPECT_EQ(json["classes"][1]["ap50_95"], 0.2);
  EXPECT_TRUE(json["classes"][3]["ap50_95"].is_null());
  EXPECT_EQ(json["confusion"].size(), 5U);
  EXPECT_EQ(json["confusion"][2][4], 1);
  EXPECT_EQ(json["classes"][1]["name"], "b\"");
  EXPECT_EQ(json["classes"][0]["tp"], 9);
  EXPECT_EQ(json["classes"][3]["truths"], 0);
  EXPECT_FALSE(json["classes"][0]["curve"].empty());
  EXPECT_EQ(json["fn"], 15);
}

TEST(RecallCounter, CountsWhatPlainLoopsCount) {
  Rng rng(1, "recall_test");
  RecallCounter counter{.iou_threshold = 0.3F};
  int truths = 0, found = 0, detections = 0;
  double iou_sum = 0;
  for (int image = 0; image < 25; ++image) {
    const auto box = [&] {
      return Box{rng.uniform(), rng.uniform(), rng.uniform(0.1F, 0.7F), rng.uniform(0.1F, 0.7F)};
    };
    DetectionList list(2);
    std::vector<Box> counted;
    for (int i = 0; i < 6; ++i) {
      const Detection detection{.box = box(), .objectness = rng.coin() ? 0.5F : 0.0005F};
      list.add(detection);
      if (detection.objectness > 0.001F) counted.push_back(detection.box);
    }
    std::vector<Truth> wanted;
    for (int i = 0; i < 3; ++i) wanted.push_back({box(), i});
    counter.add_image(list, wanted);
    detections += static_cast<int>(counted.size());
    for (const Truth& truth : wanted) {
      double best = 0;
      for (const Box& each : counted) best = std::max<double>(best, iou(each, truth.box));
      ++truths;
      found += best > 0.3F ? 1 : 0;
      iou_sum += best;
    }
  }
  EXPECT_EQ(counter.found, found);
  EXPECT_GT(found, 10);
  EXPECT_LT(found, 75);
  EXPECT_NEAR(counter.recall(), static_cast<double>(found) / truths, 1e-12);
  EXPECT_NEAR(counter.average_iou(), iou_sum / truths, 1e-12);
  EXPECT_NEAR(counter.detections_per_image(), detections / 25.0, 1e-12);
  EXPECT_EQ(RecallCounter{}.recall(), 0);
}

TEST(RecallCounter, PrintsOneLine) {
  RecallCounter counter;
  const std::vector<Truth> truths{{kBox, 0}, {kElsewhere, 0}};
  counter.add_image(one_class({{0.9F, kBox}, {0.0005F, kElsewhere}}), truths);
  EXPECT_EQ(counter.line(), "    0     1     2\tRPs/Img: 1.00\tIOU: 50.00%\tRecall:50.00%");
}

}  // namespace
}  // namespace lantern::eval
