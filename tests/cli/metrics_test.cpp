#include "cli/program.hpp"

// `detector recall`, `detector calc_anchors` and what `detector map` measures besides.
namespace lantern::cli {
namespace {

constexpr const char* kMap = "detector map obj.data net.cfg fix.weights -quiet ";

// The one-box fixture on five greys: truth equal to its box for three of them; one of the others
// has an object elsewhere.
void write_truths(const WorkFolder& folder) {
  for (const char* name : {"g255", "g204", "g153"}) {
    put(folder / ("img/" + std::string(name) + ".txt"), "0 .5 .5 .5 .5\n");
  }
  put(folder / "img/g102.txt", "0 .1 .1 .1 .1\n");
  put(folder / "img/g51.txt", "");
}

TEST(DetectorRecall, CountsTheTruthsThatAreFound) {
  const WorkFolder folder("38-batch-inference-every-image");
  write_truths(folder);
  const std::string command = "detector recall obj.data net.cfg fix.weights ";
  const Outcome one = folder.run(command + "--json=one.json");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(one.prints("3 of 4 truth boxes found\n recall = 75.00 %, average IoU = 75.00 %"))
      << one.out;
  EXPECT_TRUE(one.says("    4     3     4\tRPs/Img: 1.00\tIOU: 75.00%\tRecall:75.00%\n"))
      << one.err;
  const nlohmann::json json = parse_json(slurp(folder / "one.json"));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["found"], 3);
  EXPECT_EQ(json["recall"], 0.75);
  EXPECT_EQ(json["detections_per_image"], 1);
  EXPECT_EQ(folder.run(command + "-batch 3").out, one.out);
  put(folder / "img/g51.png", "GIF89a not a picture");
  const Outcome bad = folder.run(command);
  EXPECT_EQ(bad.code, 3);
  EXPECT_TRUE(bad.says("1 of 5 images could not be used")) << bad.err;
  EXPECT_EQ(folder.run(command + "-iou_thresh 0.5:0.95").code, 2);
}

TEST(DetectorRecall, TheThresholdIsTheOneAskedFor) {
  const WorkFolder folder("38-batch-inference-every-image");
  write_truths(folder);
  put(folder / "img/g102.txt", "0 .5 .5 .5 .4\n");  // IoU 0.8
  const std::string command = "detector recall obj.data net.cfg fix.weights -quiet -iou_thresh ";
  EXPECT_TRUE(folder.run(command + ".75").prints("4 of 4")) << folder.run(command + ".75").out;
  EXPECT_TRUE(folder.run(command + ".85").prints("3 of 4"));
}

TEST(DetectorMap, PrintsCocosTwelveNumbers) {
  const WorkFolder folder("38-batch-inference-every-image");
  write_truths(folder);
  const Outcome outcome = folder.run(std::string(kMap) + "-iou_thresh 0.5:0.95 --json=map.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // Three of four found before the first false alarm: 76 of 101 recalls at precision 1.
  EXPECT_TRUE(outcome.prints("(mAP@0.50:0.95) = 0.752475, or 75.25 %")) << outcome.out;
  EXPECT_TRUE(outcome.prints(
      " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.752\n"));
  EXPECT_TRUE(outcome.prints(
      " Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = -1.000\n"));
  const nlohmann::json coco = parse_json(slurp(folder / "map.json"))["coco"];
  EXPECT_EQ(coco.size(), 12U);
  EXPECT_EQ(coco["ar1"], 0.75);
  EXPECT_EQ(coco["ar_small"], 0.75) << "pictures of 32 x 32 have small boxes only";
  EXPECT_TRUE(coco["ap_large"].is_null());
  EXPECT_FALSE(folder.run(kMap).prints("Average Precision")) << "only when asked for";
}

TEST(DetectorMap, ConfusionMatrixIsATableAndInTheJson) {
  const WorkFolder folder("38-batch-inference-every-image");
  write_truths(folder);
  const Outcome outcome = folder.run(std::string(kMap) + "-confusion --json=map.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("confusion matrix")) << outcome.out;
  const nlohmann::json json = parse_json(slurp(folder / "map.json"));
  EXPECT_EQ(json["confusion"], nlohmann::json::parse("[[3,1],[2,0]]"));
  EXPECT_FALSE(parse_json(folder.run(std::string(kMap) + "--json").out).contains("confusion"));
}

TEST(DetectorMap, ReportIsAFolderOfFiles) {
  const WorkFolder folder("38-batch-inference-every-image");
  write_truths(folder);
  const Outcome outcome = folder.run(std::string(kMap) + "-report out/map");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"pr_curves", "f1_curves", "confusion"}) {
    const std::string stem = "out/map/" + std::string(name);
    EXPECT_TRUE(slurp(folder / (stem + ".png")).starts_with("\x89PNG")) << name;
    EXPECT_NE(slurp(folder / (stem + ".svg")).find("</svg>"), std::string::npos) << name;
  }
  EXPECT_EQ(slurp(folder / "out/map/map.txt"), outcome.out);
  EXPECT_EQ(slurp(folder / "out/map/confusion.csv"),
            "truth,thing,(background)\nthing,3,1\n(background),2,0\n");
  const nlohmann::json json = parse_json(slurp(folder / "out/map/map.json"));
  EXPECT_EQ(json["classes"][0]["curve"].size(), 3U);
  EXPECT_TRUE(json.contains("coco"));
  put(folder / "file", "");
  const Outcome refused = folder.run(std::string(kMap) + "-report file");
  EXPECT_EQ(refused.code, 4) << refused.err;
  EXPECT_EQ(refused.out, "") << "before the work";
}

TEST(CalcAnchors, EqualBoxesGiveOneAnchorAndSaySo) {
  const WorkFolder folder("34-anchors-from-equal-boxes");
  const Outcome outcome = folder.run(
      "detector calc_anchors obj.data -num_of_clusters 9 -width 64 -height 64 --json=anchors.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("only 1 distinct size: 1 anchor instead of 9")) << outcome.out;
  EXPECT_TRUE(outcome.prints(" avg IoU = 100.00 % "));
  EXPECT_TRUE(outcome.prints("anchors =  16, 16\n"));
  EXPECT_EQ(outcome.out.find("nan"), std::string::npos);
  EXPECT_EQ(slurp(folder / "anchors.txt"), " 16, 16");
  EXPECT_EQ(slurp(folder / "counters_per_class.txt"), "counters_per_class = 20, 0");
  const nlohmann::json json = parse_json(slurp(folder / "anchors.json"));
  EXPECT_EQ(json["boxes"], 20);
  EXPECT_EQ(json["distinct_sizes"], 1);
  EXPECT_EQ(json["average_iou"], 1);
}

TEST(CalcAnchors, ClearSizesAreFoundInEveryCall) {
  const WorkFolder folder("34-anchors-from-equal-boxes");
  for (const char* seed : {"0", "1", "2", "77"}) {
    const Outcome outcome = folder.run(
        "detector calc_anchors obj2.data -num_of_clusters 2 -width 64 -height 64 -quiet -seed " +
        std::string(seed));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(slurp(folder / "anchors.txt"), "  8,  8,  32, 32");
    EXPECT_TRUE(outcome.prints(" avg IoU = 100.00 % ")) << outcome.out;
    EXPECT_TRUE(outcome.prints("best possible recall at IoU 0.50 = 100.00 %"));
    EXPECT_TRUE(outcome.prints(" anchor 0:   8,  8  best for 50.00 % of the boxes"));
  }
}

TEST(CalcAnchors, ACfgGivesSizeHeadsAndWhatToCompareWith) {
  const WorkFolder folder("34-anchors-from-equal-boxes");
  const Outcome outcome = folder.run("detector calcanchors obj2.data net.cfg");  // Darknet 5
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("num_of_clusters = 3, width = 64, height = 64 ")) << outcome.out;
  EXPECT_TRUE(outcome.prints("only 2 distinct sizes: 2 anchors instead of 3"));
  EXPECT_TRUE(outcome.prints(" anchors of the cfg as it is: avg IoU = "));
  EXPECT_TRUE(outcome.prints(" head of stride 8: mask = 0,1  (100.00 % of the boxes"));
}

TEST(CalcAnchors, WhatIsMissingIsNamed) {
  const WorkFolder folder("34-anchors-from-equal-boxes");
  const std::string verb = "detector calc_anchors obj.data ";
  const Outcome no_size = folder.run(verb + "-num_of_clusters 9");
  EXPECT_EQ(no_size.code, 2);
  EXPECT_TRUE(no_size.says("-width is needed")) << no_size.err;
  EXPECT_EQ(folder.run(verb + "-width 64 -height 64 -show").code, 2);
  EXPECT_EQ(folder.run(verb + "-width 64 -height 64 -num_of_clusters 0").code, 2);
  EXPECT_FALSE(folder.has("anchors.txt"));
  for (const char* name : {"01", "02", "03", "04"}) {
    put(folder / ("img/" + std::string(name) + ".txt"), "0 .5 .5 0 0\n");
  }
  const Outcome no_boxes = folder.run(verb + "-width 64 -height 64");
  EXPECT_EQ(no_boxes.code, 3);
  EXPECT_TRUE(no_boxes.says("no box that can be used")) << no_boxes.err;
}

TEST(CalcAnchors, ClassNumbersBeyondReasonAreRefused) {
  const WorkFolder folder("34-anchors-from-equal-boxes");
  put(folder / "obj.data", "train=train.txt\n");
  put(folder / "img/01.txt", "2000000000 .5 .5 .2 .2\n");
  const Outcome outcome = folder.run("detector calc_anchors obj.data -width 64 -height 64");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(outcome.says("img/01.txt: has class 2000000000; say in the .data file"))
      << outcome.err;
}

}  // namespace
}  // namespace lantern::cli
