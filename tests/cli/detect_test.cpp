#include <cmath>

#include "cli/program.hpp"

// `detector test`, `map` and `valid`, with the one-box fixture: a white image gives one box of
// .982.
namespace lantern::cli {
namespace {

constexpr const char* kTest = "detector test obj.data net.cfg fix.weights -dont_show -quiet ";
constexpr const char* kMap = "detector map obj.data net.cfg fix.weights -quiet ";

std::vector<double> confidences(const nlohmann::json& json) {
  std::vector<double> values;
  for (const auto& image : json["images"]) {
    EXPECT_EQ(image["detections"].size(), 1U);
    for (const auto& d : image["detections"]) values.push_back(d["confidence"]);
  }
  return values;
}

TEST(DetectorTest, BatchGivesEveryImageTheSameResult) {
  const WorkFolder folder("38-batch-inference-every-image");
  const std::string list = slurp(folder / "list.txt");
  const Outcome one = folder.run(std::string(kTest) + "--json", list);
  ASSERT_EQ(one.code, 0) << one.err;
  const std::vector<double> singles = confidences(parse_json(one.out));
  const std::vector<int> greys{255, 204, 153, 102, 51};
  ASSERT_EQ(singles.size(), greys.size());
  for (std::size_t i = 0; i < greys.size(); ++i) {
    const double expected = .99966 / (1 + std::exp(-4.0 * greys[i] / 255));
    EXPECT_NEAR(singles[i], expected, 1e-3) << greys[i];
  }
  for (const char* batch : {"2", "4", "8"}) {
    const Outcome many = folder.run(std::string(kTest) + "--json -batch " + batch, list);
    ASSERT_EQ(many.code, 0) << many.err;
    const std::vector<double> values = confidences(parse_json(many.out));
    ASSERT_EQ(values.size(), singles.size());
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], singles[i], 1e-5);
  }
}

TEST(DetectorTest, PrintsBoxesOfTheOriginalPicture) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome =
      folder.run("detector test obj.data net.cfg fix.weights img/g255.png -ext_output");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints(" Detection layer: 1 - type = 28 \n"));
  EXPECT_TRUE(outcome.prints("img/g255.png: Predicted in "));
  EXPECT_TRUE(
      outcome.prints("thing: 98%\t(left_x:    8   top_y:    8   width:   16   height:   16)\n"));
  EXPECT_FALSE(outcome.prints("Enter Image Path"));
  EXPECT_TRUE(outcome.says("Loading weights from fix.weights..."));
  EXPECT_TRUE(outcome.says("Done! Loaded 2 layers from weights-file"));
  EXPECT_TRUE(slurp(folder / "predictions.jpg").starts_with("\xFF\xD8"));
}

TEST(DetectorTest, TakesFoldersPatternsAndListsAndDrawsThemAll) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome whole = folder.run(std::string(kTest) + "img -out_dir pics --json");
  EXPECT_EQ(parse_json(whole.out)["images"].size(), 5U);
  for (const char* name : {"g51", "g102", "g153", "g204", "g255"}) {
    EXPECT_TRUE(folder.has("pics/" + std::string(name) + ".jpg")) << name;
  }
  EXPECT_FALSE(folder.has("predictions.jpg"));
  const Outcome some = folder.run(std::string(kTest) + "'img/g2*.png' --json");
  EXPECT_EQ(parse_json(some.out)["images"].size(), 2U);
  EXPECT_EQ(folder.run(std::string(kTest) + "'img/x*.png'").code, 3);
}

TEST(DetectorTest, JsonHoldsNamesAndPathsUnchanged) {
  const WorkFolder folder("37-json-escapes");
  const std::string odd = "img/back\\slash \"quoted\".png";
  std::filesystem::copy_file(folder / "img/w.png", folder / odd);
  const std::string list = slurp(folder / "list.txt") + odd + "\n";
  const Outcome outcome =
      folder.run(std::string(kTest) + "-ext_output -out result.json --json=ours.json", list);
  EXPECT_EQ(outcome.code, 3) << "list.txt names an image that is not there";
  EXPECT_TRUE(outcome.says("img/missing.png")) << outcome.err;
  const nlohmann::json theirs = parse_json(slurp(folder / "result.json"));
  ASSERT_EQ(theirs.size(), 4U);
  EXPECT_EQ(theirs[3]["filename"], odd);
  EXPECT_EQ(theirs[0]["objects"][0]["name"], "16\" wheel \\ red\t end");
  EXPECT_TRUE(theirs[2].contains("error"));
  const nlohmann::json ours = parse_json(slurp(folder / "ours.json"));
  EXPECT_EQ(ours["schema"], 1);
  ASSERT_EQ(ours["images"].size(), 4U);
  EXPECT_EQ(ours["images"][3]["path"], odd);
  EXPECT_EQ(ours["images"][0]["width"], 32);
  EXPECT_EQ(ours["images"][0]["detections"][0]["box"].size(), 4U);
  EXPECT_TRUE(ours["images"][2].contains("error"));
}

TEST(DetectorTest, UnreadableImagesCanBeTolerated) {
  const WorkFolder folder("37-json-escapes");
  const Outcome outcome =
      folder.run(std::string(kTest) + "--tolerate-bad-images", "img/w.png\nimg/missing.png\n");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.says("1 of 2 images could not be used and were left out (tolerated"));
}

TEST(DetectorTest, SavedLabelsOverwriteOnlyTheirOwn) {
  const WorkFolder folder("38-batch-inference-every-image");
  const std::string command = std::string(kTest) + "-save_labels img/g255.png";
  ASSERT_EQ(folder.run(command).code, 0);
  EXPECT_EQ(slurp(folder / "img/g255.txt"), "0 0.5000 0.5000 0.5000 0.5000\n");
  EXPECT_EQ(folder.run(command).code, 0) << "its own file may be written again";
  put(folder / "img/g255.txt", "0 0.1 0.1 0.1 0.1\n");
  const Outcome refused = folder.run(command);
  EXPECT_EQ(refused.code, 4);
  EXPECT_TRUE(refused.says("-force")) << refused.err;
  EXPECT_EQ(slurp(folder / "img/g255.txt"), "0 0.1 0.1 0.1 0.1\n");
  EXPECT_EQ(folder.run(command + " -label_dir labels").code, 0);
  EXPECT_TRUE(folder.has("labels/g255.txt"));
  EXPECT_EQ(folder.run(command + " -force").code, 0);
  EXPECT_EQ(slurp(folder / "img/g255.txt"), "0 0.5000 0.5000 0.5000 0.5000\n");
}

TEST(DetectorTest, RefusedLabelsLeaveTheOthersKnown) {
  const WorkFolder folder("38-batch-inference-every-image");
  put(folder / "img/g51.txt", "0 0.1 0.1 0.1 0.1\n");
  const std::string command = std::string(kTest) + "-save_labels img";
  EXPECT_EQ(folder.run(command).code, 4);  // g51 comes last
  ASSERT_TRUE(folder.has("img/g102.txt"));
  std::filesystem::remove(folder / "img/g51.txt");
  EXPECT_EQ(folder.run(command).code, 0);
}

TEST(DetectorTest, ShortFormReadsCocoData) {
  const WorkFolder folder("38-batch-inference-every-image");
  std::filesystem::create_directories(folder / "cfg");
  std::filesystem::copy_file(folder / "obj.data", folder / "cfg/coco.data");
  const Outcome outcome = folder.run("detect net.cfg fix.weights img/g204.png");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("thing: 96%\n"));
}

TEST(DetectorMap, GivesTheSameFiguresForEveryBatch) {
  const WorkFolder folder("38-batch-inference-every-image");
  // Truth equal to the box of the fixture for the three brightest; two images without objects.
  for (const char* name : {"g255", "g204", "g153"}) {
    put(folder / ("img/" + std::string(name) + ".txt"), "0 .5 .5 .5 .5\n");
  }
  for (const char* name : {"g102", "g51"}) put(folder / ("img/" + std::string(name) + ".txt"), "");
  const Outcome one = folder.run(std::string(kMap) + "--json=one.json");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(one.prints(" mean average precision (mAP@0.50) = 1.000000, or 100.00 %\n"))
      << one.out;
  EXPECT_TRUE(one.prints(" for conf_thresh = 0.25, TP = 3, FP = 2, FN = 0"));
  EXPECT_TRUE(one.prints("class_id = 0, name = thing, ap = 100.00%"));
  EXPECT_EQ(folder.run(std::string(kMap) + "-batch 4").out, one.out);
  const nlohmann::json json = parse_json(slurp(folder / "one.json"));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_DOUBLE_EQ(json["map50"], 1.0);
  EXPECT_EQ(json["fp"], 2);
  EXPECT_TRUE(folder.run(std::string(kMap) + "-iou_thresh 0.5:0.95").prints("(mAP@0.50:0.95)"));
  EXPECT_TRUE(folder.run(std::string(kMap) + "-points 11").prints("used 11 Recall-points"));
  EXPECT_TRUE(folder.run(std::string(kMap) + "-thresh .9").prints("TP = 3, FP = 0, FN = 0"));
  EXPECT_EQ(folder.run(std::string(kMap) + "-iou_thresh 2").code, 2);
}

TEST(DetectorMap, WithoutTruthNothingIsNan) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run(kMap);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("nan"), std::string::npos);
  EXPECT_TRUE(outcome.prints("0 truth boxes")) << outcome.out;
}

TEST(DetectorMap, JsonOnStandardOutputIsAllThereIs) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run("detector map obj.data net.cfg fix.weights --json");
  EXPECT_EQ(parse_json(outcome.out)["schema"], 1);
  EXPECT_TRUE(outcome.says(" mean average precision (mAP@0.50)"));
}

TEST(DetectorMap, FlagsOfOtherVerbsAreWarnedOf) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run(std::string(kMap) + "-ext_output");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.says("warning: detector map has no use for -ext_output")) << outcome.err;
}

TEST(DetectorMap, BadImagesAreCountedAndChangeTheExitCode) {
  const WorkFolder folder("38-batch-inference-every-image");
  put(folder / "img/g51.png", "GIF89a not a picture");
  const Outcome outcome = folder.run(std::string(kMap) + "-batch 2");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(outcome.says("img/g51.png")) << outcome.err;
  EXPECT_TRUE(outcome.says("1 of 5 images could not be used")) << outcome.err;
  EXPECT_TRUE(outcome.prints("detections_count = 4"));
}

TEST(DetectorValid, WritesTheResultFiles) {
  const WorkFolder folder("38-batch-inference-every-image");
  const std::string command = "detector valid obj.data net.cfg fix.weights -quiet -batch 3";
  EXPECT_NE(folder.run(command).code, 0) << "the results folder must exist";
  std::filesystem::create_directories(folder / "results");
  const Outcome outcome = folder.run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = slurp(folder / "results/comp4_det_test_thing.txt");
  EXPECT_TRUE(text.starts_with("g255 0.98")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

}  // namespace
}  // namespace lantern::cli
