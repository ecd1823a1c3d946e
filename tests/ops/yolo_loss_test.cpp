#include "ops/yolo_loss/yolo_loss.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/rng.hpp"
#include "golden_folder.hpp"
#include "ops/yolo_golden.hpp"
#include "ops/yolo_loss/exp_approx.hpp"
#include "ops/yolo_small.hpp"

namespace lantern::ops {
namespace {

const std::filesystem::path kGolden = test::golden_folder();

// ---- golden cases -------------------------------------------------------------------------------

TEST(YoloGolden, ActivationDeltaAndCostOfEveryCase) {
  int heads = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden / "cases")) {
    if (!entry.path().filename().string().starts_with("yolo_")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const test::GoldenCase golden(entry.path());
    double cost_sum = 0;
    for (const int layer : golden.heads()) {
      SCOPED_TRACE("layer " + std::to_string(layer));
      const YoloParams p = golden.params(layer);
      const std::vector<float>& raw = golden.train.at({"output", layer - 1}).values;
      const auto size = static_cast<std::size_t>(yolo_image_size(p));
      ASSERT_EQ(raw.size(), size * static_cast<std::size_t>(golden.mini_batch));
      ASSERT_EQ(golden.truth_floats, p.max_truths * 6);
      std::vector<float> activated(raw.size()), delta(raw.size());
      std::vector<std::byte> scratch(static_cast<std::size_t>(yolo_scratch_bytes(p)));
      std::vector<YoloImageStats> stats;
      for (int b = 0; b < golden.mini_batch; ++b) {
        const std::size_t at = static_cast<std::size_t>(b) * size;
        yolo_activate(p, raw.data() + at, activated.data() + at);
        stats.push_back(yolo_delta(p, activated.data() + at,
                                   golden.truth.data() + b * golden.truth_floats, delta.data() + at,
                                   scratch));
      }
      EXPECT_LE(test::deviation(activated, golden.train.at({"output", layer}).values), 1e-5);
      EXPECT_LE(test::deviation(delta, golden.train.at({"loss_delta", layer}).values), 5e-5);
      const YoloStats sum = combine(stats);
      EXPECT_EQ(sum.images, golden.mini_batch);
      const double cost = yolo_cost(p, sum);
      EXPECT_NEAR(cost, golden.layer_cost.at(layer), 2e-5 * golden.layer_cost.at(layer));
      cost_sum += cost;
      ++heads;
    }
    const double mean = cost_sum / static_cast<double>(golden.heads().size());
    EXPECT_NEAR(mean, golden.cost, 2e-5 * golden.cost);
  }
  EXPECT_GE(heads, 28);
}

TEST(BoxIou, ValuesAndGradientsMatchTheTable) {
  std::istringstream csv(read_file(kGolden / "boxes" / "box_metrics.csv"));
  std::string line;
  std::getline(csv, line);
  const auto header = split(line, ',');
  std::vector<std::string> names(header.begin(), header.end());
  const auto column = [&](const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    EXPECT_NE(at, names.end()) << name;
    return static_cast<std::size_t>(at - names.begin());
  };
  const std::pair<std::string, IouKind> kinds[] = {{"iou", IouKind::kIou},
                                                   {"giou", IouKind::kGiou},
                                                   {"diou", IouKind::kDiou},
                                                   {"ciou", IouKind::kCiou}};
  int rows = 0;
  while (std::getline(csv, line)) {
    const std::vector<float> v = test::parse_list(line);
    SCOPED_TRACE(line);
    const Box<float> a{v[0], v[1], v[2], v[3]}, b{v[4], v[5], v[6], v[7]};
    for (const auto& [name, kind] : kinds) {
      SCOPED_TRACE(name);
      EXPECT_NEAR(box_iou(kind, a, b), v[column(name)], 2e-6F);
      const BoxVector<float> g = reference_iou_gradient(kind, a, b);
      const float want[] = {v[column(name + "_dx")], v[column(name + "_dy")],
                            v[column(name + "_dw")], v[column(name + "_dh")]};
      const float got[] = {g.x, g.y, g.w, g.h};
      float scale = 1;
      for (const float w : want) scale = std::max(scale, std::abs(w));
      for (int i = 0; i < 4; ++i) EXPECT_NEAR(got[i], want[i], 2e-5F * scale) << "xywh"[i];
    }
    EXPECT_NEAR(iou_objective(IouKind::kDiou, a, b), v[column("diounms_1.0")], 2e-6F);
    ++rows;
  }
  EXPECT_EQ(rows, 240);
}

// ---- single rules -----------------------------------------------------------------------------

TEST(YoloDelta, ASecondTruthOfAnotherClassAddsBoxAndKeepsTheOtherClasses) {
  Small net;
  std::vector<double> first, both;
  delta_of(net.p, net.activated(), net.truth, first);
  net.set_truth(1, {0.55F, 0.3F, 0.35F, 0.3F}, 1);  // same box and class again
  const YoloImageStats same = delta_of(net.p, net.activated(), net.truth, both);
  EXPECT_EQ(same.rewritten_bbox, 1);
  EXPECT_EQ(same.total_bbox, 2);
  for (int e = 0; e < 4; ++e) EXPECT_NEAR(both[net.at(e)], 2 * first[net.at(e)], 1e-12);
  for (int e = 4; e < 7; ++e) EXPECT_DOUBLE_EQ(both[net.at(e)], first[net.at(e)]);
  // Two classes on one cell: both become positive, and iou_thresh < 1 then halves the box delta.
  net.set_truth(1, {0.55F, 0.3F, 0.35F, 0.3F}, 0);
  delta_of(net.p, net.activated(), net.truth, both);
  EXPECT_GT(both[net.at(5)], 0);
  EXPECT_GT(both[net.at(6)], 0);
  std::vector<double> averaged;
  net.p.iou_thresh = 0.999F;  // on, but no further anchor passes
  delta_of(net.p, net.activated(), net.truth, averaged);
  for (int e = 0; e < 4; ++e) EXPECT_NEAR(averaged[net.at(e)], both[net.at(e)] / 2, 1e-12);
}

TEST(YoloDelta, IgnoresACellOnlyWhereSomeClassIsConfident) {
  Small net;
  net.truth.assign(18, 0.0F);
  net.set_truth(0, {0.5F, 0.25F, 0.9F, 0.9F}, 0);  // best anchor 2: not of this head
  for (double& v : net.raw) v = 0;
  net.p.ignore_thresh = 0.05F;
  std::vector<double> delta;
  for (int e : {5, 6}) {
    for (std::int64_t c = 0; c < 6; ++c) net.raw[static_cast<std::size_t>(e * 6 + c)] = -3;
  }
  YoloImageStats stats = delta_of(net.p, net.activated(), net.truth, delta);
  EXPECT_EQ(stats.count, 0);
  EXPECT_DOUBLE_EQ(delta[net.at(4)], -0.5);
  net.raw[net.at(6)] = 3;  // class 1, though the truth is of class 0
  delta_of(net.p, net.activated(), net.truth, delta);
  EXPECT_EQ(delta[net.at(4)], 0);
}

TEST(YoloDelta, ClsNormalizerActsOnTheTrueClassWithCountersOnlyUnlessAskedForAll) {
  Small net;
  std::vector<double> plain, scaled;
  delta_of(net.p, net.activated(), net.truth, plain);
  net.p.cls_normalizer = 0.5F;
  delta_of(net.p, net.activated(), net.truth, scaled);
  EXPECT_EQ(plain, scaled);
  net.p.counters_per_class = {1, 1};
  delta_of(net.p, net.activated(), net.truth, scaled);
  EXPECT_DOUBLE_EQ(scaled[net.at(5)], plain[net.at(5)]);
  EXPECT_DOUBLE_EQ(scaled[net.at(6)], plain[net.at(6)] / 2);
  net.p.cls_normalizer_all = true;
  for (const bool counters : {true, false}) {
    if (!counters) net.p.counters_per_class.clear();
    delta_of(net.p, net.activated(), net.truth, scaled);
    EXPECT_DOUBLE_EQ(scaled[net.at(5)], plain[net.at(5)] / 2);
    EXPECT_DOUBLE_EQ(scaled[net.at(6)], plain[net.at(6)] / 2);
  }
}

TEST(YoloDelta, ClassMapIsAppliedAfterTheRangeCheck) {
  Small net;
  net.p.class_map = {1, 0};
  std::vector<double> delta;
  delta_of(net.p, net.activated(), net.truth, delta);
  EXPECT_GT(delta[net.at(5)], 0);  // class 1 became class 0
  EXPECT_LT(delta[net.at(6)], 0);
  net.p.class_map = {1, 7};  // out of range: the truth is passed over
  EXPECT_EQ(delta_of(net.p, net.activated(), net.truth, delta).count, 0);
  net.p.class_map = {1};
  EXPECT_EQ(delta_of(net.p, net.activated(), net.truth, delta).count, 0);
}

TEST(YoloDelta, BadTruthsArePassedOverAndEdgesBelongToTheLastCell) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Small net;
  std::vector<double> delta;
  const auto count_with_class = [&](float class_id) {
    net.set_truth(0, {0.55F, 0.3F, 0.35F, 0.3F}, class_id);
    return delta_of(net.p, net.activated(), net.truth, delta).count;
  };
  for (const float bad : {-1.0F, 2.0F, 1e20F, -1e20F, kNan, kInf}) {
    EXPECT_EQ(count_with_class(bad), 0) << bad;
  }
  for (const std::array<float, 4>& box :
       {std::array{kNan, 0.3F, 0.3F, 0.3F}, std::array{0.5F, kInf, 0.3F, 0.3F},
        std::array{0.5F, 0.3F, 0.0F, 0.3F}, std::array{0.5F, 0.3F, 0.3F, -0.3F}}) {
    net.set_truth(0, box, 1);
    net.set_truth(1, {0.55F, 0.3F, 0.35F, 0.3F}, 1);  // the list goes on behind it
    EXPECT_EQ(delta_of(net.p, net.activated(), net.truth, delta).count, 1);
  }
  net.truth.assign(18, 0.0F);
  net.set_truth(1, {0.55F, 0.3F, 0.35F, 0.3F}, 1);  // behind the end of the list
  EXPECT_EQ(delta_of(net.p, net.activated(), net.truth, delta).count, 0);
  net.set_truth(0, {1.0F, 1.0F, 0.35F, 0.3F}, 1);
  net.truth[6] = 0;
  EXPECT_EQ(delta_of(net.p, net.activated(), net.truth, delta).count, 1);
  EXPECT_GT(delta[4 * 6 + 5], 0);  // last cell
  net.set_truth(0, {-5.0F, 1e30F, 0.35F, 0.3F}, 1);
  EXPECT_EQ(delta_of(net.p, net.activated(), net.truth, delta).count, 1);
  EXPECT_GT(delta[4 * 6 + 3], 0);  // first column, last row
}

TEST(YoloDelta, ObjectnessThatIsNotFiniteCountsAsZeroOnlyBesideATruth) {
  Small net;
  std::vector<double> activated = net.activated(), delta;
  activated[4 * 6 + 4] = std::numeric_limits<double>::quiet_NaN();
  delta_of(net.p, activated, net.truth, delta);
  EXPECT_EQ(delta[4 * 6 + 4], 0);
  net.truth.assign(18, 0.0F);
  delta_of(net.p, activated, net.truth, delta);
  EXPECT_TRUE(std::isnan(delta[4 * 6 + 4]));  // left for the run's own check to find
}

TEST(YoloDelta, HugePredictionsLeaveFiniteBoundedBoxDeltas) {
  for (const bool exact : {false, true}) {
    for (const IouKind kind : kIouLosses) {
      Small net;
      net.p.iou_loss = kind;
      net.p.exact_iou_gradient = exact;
      net.p.max_delta = 0.01F;
      for (const double extreme : {1000.0, -1000.0, 60.0, -60.0}) {
        net.raw[net.at(2)] = extreme;
        std::vector<double> delta;
        delta_of(net.p, net.activated(), net.truth, delta);
        for (int e = 0; e < 4; ++e) {
          EXPECT_LE(std::abs(delta[net.at(e)]), 0.01 + 1e-9) << "entry " << e << " t " << extreme;
        }
      }
    }
  }
}

TEST(YoloDelta, FloatAgreesWithDoubleOnALargerGrid) {
  YoloParams p;
  p.classes = 5;
  p.anchors = {12, 16, 19, 36, 40, 28, 36, 75, 76, 55, 72, 146};
  p.mask = {0, 2, 4};
  p.max_truths = 40;
  p.truth_thresh = 0.6F;
  p.iou_thresh = 0.213F;
  p.iou_loss = IouKind::kCiou;
  p.ignore_thresh = 0.4F;
  p.net_w = p.net_h = 416;
  p.grid_w = 37;  // not a multiple of a vector
  p.grid_h = 21;
  Rng rng(5, "large");
  std::vector<float> raw(static_cast<std::size_t>(yolo_image_size(p)));
  for (float& v : raw) v = rng.normal();
  std::vector<float> truth(240, 0.0F);
  for (std::size_t t = 0; t < 30; ++t) {
    for (std::size_t k = 0; k < 2; ++k) truth[6 * t + k] = rng.uniform(0.05F, 0.95F);
    for (std::size_t k = 2; k < 4; ++k) truth[6 * t + k] = rng.uniform(0.02F, 0.4F);
    truth[6 * t + 4] = static_cast<float>(rng.uniform_int(0, 4));
  }
  std::vector<double> raw_double(raw.begin(), raw.end()), delta_double;
  std::vector<float> delta_float;
  yolo_activate(p, raw.data(), raw.data());  // in place
  yolo_activate(p, raw_double.data(), raw_double.data());
  const YoloImageStats single = delta_of(p, raw, truth, delta_float);
  const YoloImageStats twice = delta_of(p, raw_double, truth, delta_double);
  EXPECT_LE(test::deviation(delta_float, {delta_double.begin(), delta_double.end()}), 2e-4);
  EXPECT_GT(single.count, 30);
  EXPECT_GT(single.total_bbox, single.count);  // truth_thresh found some
  EXPECT_EQ(single.count, twice.count);
  EXPECT_EQ(single.total_bbox, twice.total_bbox);
  EXPECT_EQ(single.rewritten_bbox, twice.rewritten_bbox);
  // The sums are those of the deltas as written.
  double all = 0, boxes = 0;
  for (std::size_t i = 0; i < delta_float.size(); ++i) {
    const double square = static_cast<double>(delta_float[i]) * delta_float[i];
    all += square;
    if (static_cast<std::int64_t>(i) / (p.grid_w * p.grid_h) % p.entries() < 4) boxes += square;
  }
  EXPECT_NEAR(single.delta_squares, all, 1e-9 * all);
  EXPECT_NEAR(single.box_squares, boxes, 1e-9 * boxes);
  EXPECT_NEAR(single.non_box_squares, all - boxes, 1e-9 * all);
}

TEST(YoloActivate, ApproximationStaysWithinTwoUlp) {
  double worst = 0;
  for (float x = -87.0F; x < 88.0F; x += 0.0137F) {
    const double want = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(exp_approx(x)) - want) / want);
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_TRUE(std::isnan(exp_approx(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(logistic_approx(std::numeric_limits<float>::infinity()), 1.0F);
  EXPECT_LT(logistic_approx(-std::numeric_limits<float>::infinity()), 1e-37F);
  EXPECT_EQ(logistic_approx(0.0F), 0.5F);
}

// ---- report -------------------------------------------------------------------------------------

TEST(YoloReport, CostFollowsTheKind) {
  YoloParams p;
  p.iou_normalizer = 0.5F;
  p.obj_normalizer = 2;
  YoloImageStats image;
  image.delta_squares = 10;
  image.box_squares = 4;
  image.non_box_squares = 6;
  image.count = 2;
  image.iou = 1.2;
  image.giou = 1.0;
  const YoloImageStats images[] = {image, image};
  const YoloStats sum = combine(images);
  EXPECT_DOUBLE_EQ(yolo_cost(p, sum), 20);
  p.iou_loss = IouKind::kCiou;
  EXPECT_DOUBLE_EQ(yolo_cost(p, sum), 0.5 * (1 - 0.6) + 2 * 12);
  p.iou_loss = IouKind::kGiou;
  EXPECT_DOUBLE_EQ(yolo_cost(p, sum), 0.5 * (1 - 0.5) + 2 * 12);
  EXPECT_EQ(
      yolo_console_line(p, sum, 82),
      "v3 (giou loss, Normalizer: (iou: 0.50, obj: 2.00, cls: 1.00) Region 82 Avg (IOU: 0.600000), "
      "count: 4, class_loss = 12.000000, iou_loss = -2.000000, total_loss = 10.000000");
  p.show_details = false;
  p.iou_loss = IouKind::kDiou;
  EXPECT_DOUBLE_EQ(yolo_cost(p, sum), 20);
  EXPECT_EQ(
      yolo_console_line(p, sum, 82),
      "v3 (iou loss, Normalizer: (iou: 0.50, obj: 2.00, cls: 1.00) Region 82 Avg (IOU: 0.600000), "
      "count: 4, total_loss = 10.000000");
  EXPECT_EQ(yolo_bbox_line(8, 1), " total_bbox = 8, rewritten_bbox = 12.500000 %");
  EXPECT_EQ(yolo_bbox_line(0, 0), " total_bbox = 0, rewritten_bbox = 0.000000 %");
  EXPECT_DOUBLE_EQ(yolo_cost(p, YoloStats{}), 0);
}

TEST(YoloReport, ClassMultipliers) {
  EXPECT_TRUE(yolo_class_multipliers({}).empty());
  YoloParams p;
  p.max_delta = 30;
  p.counters_per_class = {100, 50, 0};
  EXPECT_EQ(yolo_class_multipliers(p), (std::vector<float>{1, 2, 30}));
}

}  // namespace
}  // namespace lantern::ops
