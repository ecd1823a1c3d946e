#include "eval/results.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "csv.hpp"
#include "eval/valid_writers.hpp"

namespace lantern::eval {
namespace {

/// Two detections: dog (and cat) on the right, cat on the left reaching over the edge.
DetectionList two() {
  DetectionList list(3);
  std::size_t i = list.add({{0.75F, 0.5F, 0.25F, 0.5F}, 0.9F, 0, 0, 0});
  list.probabilities(i)[0] = 0.98F;
  list.probabilities(i)[1] = 0.3F;
  i = list.add({{0.125F, 0.5F, 0.375F, 0.25F}, 0.8F, 0, 0, 1});
  list.probabilities(i)[1] = 0.92F;
  list.probabilities(i)[2] = 0.91F;
  return list;
}

const std::vector<std::string> kNames{"dog", "cat", "dont_show_x"};

class ResultsTest : public ::testing::Test {
 protected:
  ResultsTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                fmt::format("lantern_results_{}", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~ResultsTest() override { std::filesystem::remove_all(folder_); }
  ValidOptions options(std::vector<std::string> names) const {
    return {.folder = folder_, .names = std::move(names)};
  }
  std::filesystem::path folder_;
};

TEST_F(ResultsTest, TextIsSortedByTheLeftEdge) {
  EXPECT_EQ(detections_text(two(), kNames, {400, 200}, 0.25F, false),
            "cat: 92%\ndog: 98%\ncat: 30%\n");
  EXPECT_EQ(detections_text(two(), kNames, {400, 200}, 0.5F, true),
            "cat: 92%\t(left_x:  -25   top_y:   75   width:  150   height:   50)\n"
            "dog: 98%\t(left_x:  250   top_y:   50   width:  100   height:  100)\n");
  const std::vector<int> ids{4, 5};
  EXPECT_EQ(detections_text(two(), kNames, {400, 200}, 0.95F, false, ids),
            "dog: 98% (track_id = 4)\n");
  EXPECT_EQ(detections_text(DetectionList(3), kNames, {400, 200}, 0.25F, true), "");
}

TEST_F(ResultsTest, OutputObjectHasDarknetsBytes) {
  DetectionList list(17);
  const std::size_t i = list.add({{0.288195F, 0.66234F, 0.263441F, 0.510432F}, 0.99F});
  list.probabilities(i)[16] = 0.980123F;
  std::vector<std::string> names(17, "x");
  names[16] = "dog";
  EXPECT_EQ(
      output_object({.frame_id = 1, .filename = "data/dog.jpg"}, list, names),
      "{\n \"frame_id\":1, \n \"filename\":\"data/dog.jpg\", \n \"objects\": [ \n"
      "  {\"class_id\":16, \"name\":\"dog\", \"relative_coordinates\":{\"center_x\":0.288195, "
      "\"center_y\":0.662340, \"width\":0.263441, \"height\":0.510432}, "
      "\"confidence\":0.980123}\n ] \n}");
}

TEST_F(ResultsTest, OutputFileIsStrictJsonWhateverTheNames) {
  const std::vector<std::string> names{"16\" wheel \\ red \t end", "cat", "c"};
  const auto path = folder_ / "result.json";
  {
    OutputJsonFile file(path);
    file.add(output_object({.frame_id = 1, .filename = "img\\w\".png"}, two(), names));
    EXPECT_FALSE(std::filesystem::exists(path));
    file.add(output_object({.frame_id = 2, .filename = "none.png"}, DetectionList(3), names));
    file.add(output_object({.frame_id = 3, .filename = "bad.png", .error = "cannot be read"},
                           DetectionList(3), names));
    file.finish();
  }
  const auto json = nlohmann::json::parse(read_file(path));
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0]["filename"], "img\\w\".png");
  EXPECT_EQ(json[0]["objects"][0]["name"], names[0]);
  ASSERT_EQ(json[0]["objects"].size(), 4U);
  EXPECT_EQ(json[0]["objects"][1]["confidence"], 0.92);
  EXPECT_TRUE(json[1]["objects"].empty());
  EXPECT_EQ(json[2]["error"], "cannot be read");
  const auto extended = nlohmann::json::parse(
      output_object({.size = {400, 200}, .milliseconds = 1.5}, two(), names, true));
  EXPECT_EQ(extended["image_size"]["width"], 400);
  EXPECT_EQ(extended["objects"][0]["absolute_box"]["left"], 250.0);
  EXPECT_FALSE(extended.contains("filename"));
}

TEST_F(ResultsTest, AnEmptyOutputFileIsValid) {
  OutputJsonFile file(folder_ / "empty.json");
  file.finish();
  EXPECT_TRUE(nlohmann::json::parse(read_file(folder_ / "empty.json")).empty());
}

TEST_F(ResultsTest, OwnJsonFollowsItsSchema) {
  ResultsJson results;
  EXPECT_TRUE(nlohmann::json::parse(results.text())["images"].empty());
  results.add("a\xFF.jpg", {400, 200}, two(), kNames, 0.25F);
  results.add("b.jpg", {0, 0}, DetectionList(3), kNames, 0.25F, "cannot be read");
  const auto json = nlohmann::json::parse(results.text());
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["images"].size(), 2U);
  const auto& first = json["images"][0];
  EXPECT_EQ(first["width"], 400);
  ASSERT_EQ(first["detections"].size(), 4U);
  EXPECT_EQ(first["detections"][0]["class_id"], 0);
  EXPECT_EQ(first["detections"][0]["box"], (std::vector<double>{0.75, 0.5, 0.25, 0.5}));
  EXPECT_EQ(json["images"][1]["error"], "cannot be read");
}

TEST_F(ResultsTest, VocWritesOneFileAClassWithOneBasedClippedPixels) {
  const auto writer = make_valid_writer("voc", options({"dog", "cat", "pig"}));
  writer->add_image("img/2007.000.jpg", {400, 200}, two());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  writer->finish();
  EXPECT_EQ(read_file(folder_ / "comp4_det_test_dog.txt"),
            "2007 0.980000 251.000000 51.000000 351.000000 151.000000\n");
  EXPECT_EQ(read_file(folder_ / "comp4_det_test_pig.txt"),
            "2007 0.910000 1.000000 76.000000 126.000000 126.000000\n");
}

TEST_F(ResultsTest, CocoIsValidJsonAlsoWhenEmpty) {
  auto writer = make_valid_writer("coco", options(std::vector<std::string>(80, "x")));
  writer->add_image("COCO_val2014_000000000139.jpg", {400, 200}, DetectionList(80));
  writer->finish();
  EXPECT_TRUE(nlohmann::json::parse(read_file(folder_ / "coco_results.json")).empty());

  writer = make_valid_writer("coco", options(std::vector<std::string>(80, "x")));
  DetectionList list(80);
  list.probabilities(list.add({{0.125F, 0.5F, 0.375F, 0.25F}, 0.8F}))[79] = 0.5F;
  writer->add_image("COCO_val2014_000000000139.jpg", {400, 200}, list);
  writer->add_image("000000005001.jpg", {400, 200}, list);
  EXPECT_THROW(writer->add_image("dog.jpg", {400, 200}, list), Error);
  writer->finish();
  const auto json = nlohmann::json::parse(read_file(folder_ / "coco_results.json"));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["image_id"], 139);
  EXPECT_EQ(json[1]["image_id"], 5001);
  EXPECT_EQ(json[0]["category_id"], 90);
  EXPECT_EQ(json[0]["bbox"], (std::vector<double>{0, 75, 125, 50}));
}

TEST_F(ResultsTest, ImagenetBddAndKitti) {
  auto writer = make_valid_writer("imagenet", options(kNames));
  writer->add_image("a.jpg", {400, 200}, DetectionList(3));
  writer->add_image("b.jpg", {400, 200}, two());
  writer->finish();
  const std::string text = read_file(folder_ / "imagenet-detection.txt");
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "2 1 0.980000 250.000000 50.000000 350.000000 150.000000");

  writer = make_valid_writer("bdd", options(kNames));
  writer->add_image("x/b.jpg", {400, 200}, two());
  writer->finish();
  const auto json = nlohmann::json::parse(read_file(folder_ / "bdd_results.json"));
  EXPECT_EQ(json[0]["name"], "b");
  EXPECT_EQ(json[0]["category"], "bike");
  EXPECT_EQ(json[0]["bbox"], (std::vector<double>{250, 50, 350, 150}));

  writer = make_valid_writer("kitti", options(kNames));
  writer->add_image("000012.png", {400, 200}, DetectionList(3));
  writer->add_image("000013.png", {400, 200}, two());
  writer->finish();
  EXPECT_EQ(read_file(folder_ / "kitti_results/data/000012.txt"), "");
  const std::string lines = read_file(folder_ / "kitti_results/data/000013.txt");
  EXPECT_EQ(
      lines.substr(0, lines.find('\n')),
      "car -1 -1 -10 250.000000 50.000000 350.000000 150.000000 -1 -1 -1 -1000 -1000 -1000 -10 "
      "0.980000");
}

TEST_F(ResultsTest, RefusesWhatCannotBeWrittenBeforeTheRun) {
  EXPECT_THROW(make_valid_writer("pascal", options(kNames)), Error);
  EXPECT_THROW(make_valid_writer("coco", options(std::vector<std::string>(81, "x"))), Error);
  EXPECT_THROW(make_valid_writer("voc", options({"a/b"})), Error);
  ValidOptions missing = options(kNames);
  missing.folder = folder_ / "none";
  EXPECT_THROW(make_valid_writer("voc", missing), Error);
}

}  // namespace
}  // namespace lantern::eval
