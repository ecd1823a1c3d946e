#include "eval/coco.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/rng.hpp"
#include "eval/map_report.hpp"

namespace lantern::eval {
namespace {

struct Picture {
  ImageSize size;
  DetectionList detections;
  std::vector<Truth> truths, difficult;
};

CocoResult measured(int classes, const std::vector<Picture>& pictures) {
  CocoMetrics metrics(classes);
  for (const Picture& picture : pictures) {
    metrics.add_image(picture.detections, picture.size, picture.truths, picture.difficult);
  }
  return metrics.result();
}

std::optional<double> number(const CocoResult& result, std::string_view key) {
  for (std::size_t n = 0; n < kCocoNumbers.size(); ++n) {
    if (kCocoNumbers[n].key == key) return result.numbers[n];
  }
  ADD_FAILURE() << key;
  return {};
}

// ---- the definition, written down once more without a thought of speed ----

struct Rect {
  double x1, y1, x2, y2;
  double area() const { return (x2 - x1) * (y2 - y1); }
};

Rect rect(const Box& box, ImageSize size) {
  const double x = box.x, y = box.y, w = box.w, h = box.h;
  return {(x - w / 2) * size.width, (y - h / 2) * size.height, (x + w / 2) * size.width,
          (y + h / 2) * size.height};
}

double overlap(const Rect& a, const Rect& b) {
  const double w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  return w > 0 && h > 0 ? w * h / (a.area() + b.area() - w * h) : 0;
}

struct Setting {
  double iou;
  double low, high;  // area
  std::size_t most;
};
struct Pair {
  std::optional<double> ap, recall;
};

Pair plain(const std::vector<Picture>& pictures, int class_id, const Setting& setting) {
  struct Entry {
    float score;
    bool hit;
  };
  std::vector<Entry> entries;
  int counted_truths = 0;
  for (const Picture& picture : pictures) {
    struct Wanted {
      Rect rect;
      bool counts, found;
    };
    std::vector<Wanted> wanted;
    const auto want = [&](const Truth& truth, bool may_count) {
      if (truth.class_id != class_id) return;
      const Rect r = rect(truth.box, picture.size);
      const bool counts = may_count && r.area() >= setting.low && r.area() <= setting.high;
      wanted.push_back({r, counts, false});
      counted_truths += counts ? 1 : 0;
    };
    for (const Truth& truth : picture.truths) want(truth, true);
    for (const Truth& truth : picture.difficult) want(truth, false);
    struct Found {
      float score;
      Rect rect;
    };
    std::vector<Found> found;
    for (std::size_t i = 0; i < picture.detections.size(); ++i) {
      const float score = picture.detections.probabilities(i)[static_cast<std::size_t>(class_id)];
      if (score > 0) found.push_back({score, rect(picture.detections[i].box, picture.size)});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.score > b.score; });
    if (found.size() > setting.most) found.resize(setting.most);
    for (const Found& each : found) {
      Wanted* match = nullptr;
      for (const bool counts : {true, false}) {  // one that counts, if there is any
        double best = setting.iou;
        for (Wanted& truth : wanted) {
          if (match != nullptr && !counts && match->counts) break;
          if (truth.counts != counts || truth.found) continue;
          if (const double iou = overlap(each.rect, truth.rect); iou >= best) {
            best = iou;
            match = &truth;
          }
        }
      }
      if (match != nullptr) match->found = true;
      const bool is_of_size = each.rect.area() >= setting.low && each.rect.area() <= setting.high;
      if (match != nullptr ? match->counts : is_of_size) {
        entries.push_back({each.score, match != nullptr});
      }
    }
  }
  if (counted_truths == 0) return {};
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.score > b.score; });
  struct Point {
    double recall, precision;
  };
  std::vector<Point> points;
  double hits = 0;
  for (const Entry& entry : entries) {
    hits += entry.hit ? 1 : 0;
    points.push_back({hits / counted_truths, hits / static_cast<double>(points.size() + 1)});
  }
  double sum = 0;
  for (int i = 0; i <= 100; ++i) {
    double best = 0;
    for (const Point& point : points) {
      // The published evaluation counts its recalls up in steps of 0.01.
      if (point.recall >= (i == 100 ? 1 : i * 0.01)) best = std::max(best, point.precision);
    }
    sum += best;
  }
  return {sum / 101, hits / counted_truths};
}

std::optional<double> plain_number(const std::vector<Picture>& pictures, int classes,
                                   const CocoNumber& number) {
  double low = 0, high = 1e10;
  if (number.area == "small") high = 1024;
  if (number.area == "medium") low = 1024, high = 9216;
  if (number.area == "large") low = 9216;
  double sum = 0;
  int count = 0;
  for (int c = 0; c < classes; ++c) {
    for (int percent = 50; percent <= 95; percent += 5) {
      if (number.iou == "0.50" && percent != 50) continue;
      if (number.iou == "0.75" && percent != 75) continue;
      const Pair pair =
          plain(pictures, c,
                {percent / 100.0, low, high, static_cast<std::size_t>(number.most_detections)});
      const std::optional<double> value = number.is_recall ? pair.recall : pair.ap;
      if (!value) continue;
      sum += *value;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

Box random_box(Rng& rng) {
  return {rng.uniform(0.1F, 0.9F), rng.uniform(0.1F, 0.9F), rng.uniform(0.03F, 0.5F),
          rng.uniform(0.03F, 0.5F)};
}

Box near(Rng& rng, const Box& box) {
  const auto moved = [&](float value, float by) { return value + by * rng.uniform(-0.3F, 0.3F); };
  return {moved(box.x, box.w), moved(box.y, box.h), moved(box.w, box.w), moved(box.h, box.h)};
}

std::vector<Picture> random_pictures(std::uint64_t seed, int classes) {
  Rng rng(seed, "coco_test");
  const auto random_class = [&] { return static_cast<int>(rng.uniform_int(0, classes - 1)); };
  std::vector<Picture> pictures;
  for (int i = 0; i < 5; ++i) {
    Picture& picture = pictures.emplace_back(Picture{
        {static_cast<int>(rng.uniform_int(60, 400)), static_cast<int>(rng.uniform_int(60, 400))},
        DetectionList(classes),
        {},
        {}});
    const auto truths = rng.uniform_int(0, 6);
    for (std::int64_t t = 0; t < truths; ++t) {
      auto& list = rng.uniform() < 0.15F ? picture.difficult : picture.truths;
      list.push_back({random_box(rng), random_class()});
    }
    // Some pictures have more than the 10, the first of some seeds more than the 100 that count.
    const std::int64_t found = i == 0 && seed % 8 == 0 ? 400 : rng.uniform_int(0, 24);
    for (std::int64_t d = 0; d < found; ++d) {
      const bool is_near = !picture.truths.empty() && rng.uniform() < 0.7F;
      const Truth truth = is_near ? picture.truths[static_cast<std::size_t>(rng.uniform_int(
                                        0, static_cast<std::int64_t>(picture.truths.size()) - 1))]
                                  : Truth{random_box(rng), random_class()};
      const std::size_t index =
          picture.detections.add({.box = near(rng, truth.box), .objectness = 1});
      const auto probabilities = picture.detections.probabilities(index);
      // Few different scores, so that there are equal ones; sometimes two classes.
      const auto score = [&] { return static_cast<float>(rng.uniform_int(1, 12)) / 12; };
      probabilities[static_cast<std::size_t>(truth.class_id)] = score();
      if (rng.uniform() < 0.2F) probabilities[static_cast<std::size_t>(random_class())] = score();
    }
  }
  return pictures;
}

TEST(Coco, EqualsThePlainDefinitionOnRandomDetections) {
  constexpr int kClasses = 3;
  int present = 0;
  for (std::uint64_t seed = 0; seed < 48; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Picture> pictures = random_pictures(seed, kClasses);
    const CocoResult result = measured(kClasses, pictures);
    for (std::size_t n = 0; n < kCocoNumbers.size(); ++n) {
      SCOPED_TRACE(kCocoNumbers[n].key);
      const std::optional<double> want = plain_number(pictures, kClasses, kCocoNumbers[n]);
      ASSERT_EQ(result.numbers[n].has_value(), want.has_value());
      if (!want) continue;
      EXPECT_NEAR(*result.numbers[n], *want, 1e-12);
      present += *want > 0 && *want < 1 ? 1 : 0;
    }
  }
  EXPECT_GT(present, 48 * 6) << "most numbers have to say something";
}

// ---- by hand ----

constexpr ImageSize kSize{200, 200};

Box pixels(double left, double top, double w, double h) {
  return {static_cast<float>((left + w / 2) / 200), static_cast<float>((top + h / 2) / 200),
          static_cast<float>(w / 200), static_cast<float>(h / 200)};
}

DetectionList found(const std::vector<std::pair<float, Box>>& boxes) {
  DetectionList list(1);
  for (const auto& [score, box] : boxes) {
    list.probabilities(list.add({.box = box, .objectness = score}))[0] = score;
  }
  return list;
}

TEST(Coco, GivesTheFiguresOfACaseDoneByHand) {
  // One small truth found exactly, a medium one missed, a large one found at IoU 0.62, and before
  // all of them a false alarm of medium size.
  const std::vector<Picture> pictures{
      {kSize,
       found({{0.95F, pixels(140, 0, 60, 40)},
              {0.9F, pixels(0, 180, 20, 20)},
              {0.8F, pixels(0, 0, 74.4, 120)}}),
       {{pixels(0, 180, 20, 20), 0}, {pixels(140, 140, 50, 50), 0}, {pixels(0, 0, 120, 120), 0}},
       {}}};
  const CocoResult result = measured(1, pictures);
  // Up to IoU 0.6 recall 2/3 at precision 2/3 (67 of 101 recalls), beyond 1/3 at 1/2 (34).
  EXPECT_NEAR(*number(result, "ap50"), 67 * (2.0 / 3) / 101, 1e-12);
  EXPECT_NEAR(*number(result, "ap75"), 34 * 0.5 / 101, 1e-12);
  EXPECT_NEAR(*number(result, "ap"), (3 * 67 * (2.0 / 3) + 7 * 34 * 0.5) / 1010, 1e-12);
  EXPECT_EQ(number(result, "ap_small"), 1);
  EXPECT_EQ(number(result, "ap_medium"), 0);
  EXPECT_NEAR(*number(result, "ap_large"), 0.3, 1e-12);
  EXPECT_EQ(number(result, "ar1"), 0);
  EXPECT_NEAR(*number(result, "ar10"), (3 * 2.0 / 3 + 7 * 1.0 / 3) / 10, 1e-12);
  EXPECT_EQ(number(result, "ar100"), number(result, "ar10"));
  EXPECT_EQ(number(result, "ar_small"), 1);
  EXPECT_EQ(number(result, "ar_medium"), 0);
  EXPECT_NEAR(*number(result, "ar_large"), 0.3, 1e-12);
  ASSERT_EQ(result.class_ap.size(), 1U);
  EXPECT_EQ(result.class_ap[0], number(result, "ap"));
  MapResult map;
  map.classes.resize(1);
  const std::string text = map_report_text(map, {}, {.coco = &result});
  EXPECT_NE(text.find(" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = "
                      "0.250\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = "
                      "0.000\n"),
            std::string::npos)
      << text;
}

TEST(Coco, ADetectionWhoseBestTruthIsTakenTakesTheNext) {
  const std::vector<Truth> truths{{pixels(0, 0, 100, 100), 0}, {pixels(20, 0, 100, 100), 0}};
  const DetectionList list =
      found({{0.9F, pixels(0, 0, 100, 100)}, {0.8F, pixels(5, 0, 100, 100)}});
  EXPECT_EQ(number(measured(1, {{kSize, list, truths, {}}}), "ap50"), 1);
  AveragePrecision darknet(1);
  darknet.add_image(list, truths);
  EXPECT_EQ(darknet.result().map, 0.5) << "Darknet: a second detection of a taken truth is false";
}

TEST(Coco, AHitNeedsTheThresholdItself) {
  // IoU is 1/2 without rounding.
  const Box half{0.25F, 0.5F, 0.5F, 1}, whole{0.5F, 0.5F, 1, 1};
  const CocoResult result = measured(1, {{kSize, found({{0.9F, half}}), {{whole, 0}}, {}}});
  EXPECT_EQ(number(result, "ap50"), 1);
  EXPECT_NEAR(*number(result, "ap"), 0.1, 1e-12);
}

TEST(Coco, DifficultObjectsCountNeitherWay) {
  const Truth easy{pixels(0, 0, 50, 50), 0}, hard{pixels(100, 100, 50, 50), 0};
  const std::vector<Picture> pictures{
      {kSize, found({{0.9F, hard.box}, {0.8F, easy.box}}), {easy, hard}, {hard}}};
  EXPECT_EQ(number(measured(1, pictures), "ap"), 1);
}

TEST(Coco, ClassesWithoutTruthDoNotCount) {
  DetectionList list(2);
  const Truth truth{pixels(0, 0, 50, 50), 0};
  list.probabilities(list.add({.box = truth.box, .objectness = 1}))[0] = 0.9F;
  list.probabilities(list.add({.box = truth.box, .objectness = 1}))[1] = 0.9F;
  const CocoResult result = measured(2, {{kSize, list, {truth, {truth.box, 7}}, {}}});
  EXPECT_EQ(number(result, "ap"), 1);
  EXPECT_FALSE(number(result, "ap_small").has_value());
  ASSERT_EQ(result.class_ap.size(), 2U);
  EXPECT_FALSE(result.class_ap[1].has_value());
  MapResult map;
  map.classes.resize(2);
  EXPECT_NE(
      map_report_text(map, {}, {.coco = &result}).find("area= small | maxDets=100 ] = -1.000\n"),
      std::string::npos);
  EXPECT_FALSE(measured(2, {}).numbers[0].has_value());
}

}  // namespace
}  // namespace lantern::eval
