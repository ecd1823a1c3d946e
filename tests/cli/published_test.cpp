// The verbs on published weights, against what independent programs give. Skips without ../shared.
#include "cli/program.hpp"

namespace lantern::cli {
namespace {

class Published : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(shared_ / "weights")) GTEST_SKIP() << "no ../shared here";
    // Expected figures are of plain suppression; the cfg asks for another kind.
    std::string cfg = slurp(shared_ / "weights" / kName / (kName + ".cfg"));
    for (std::size_t at; (at = cfg.find("nms_kind=greedynms")) != std::string::npos;) {
      cfg.replace(at, 18, "nms_kind=default");
    }
    put(folder_ / "net.cfg", cfg);
    put(folder_ / "boxed.cfg", "[net]\nletter_box=1\n" + cfg.substr(cfg.find('\n') + 1));
    // Paths of the data set are relative to its folder.
    const std::filesystem::path data = shared_ / "data" / "coco-cc";
    put(folder_ / "obj.data", "classes = 80\nvalid = " + (data / "valid.txt").string() +
                                  "\nnames = " + (data / "obj.names").string() + "\n");
    weights_ = (shared_ / "weights" / kName / (kName + ".weights")).string();
  }

  const std::string kName = "yolo-fastest-1.1";
  std::filesystem::path shared_ = std::filesystem::path(LANTERN_SOURCE_DIR) / ".." / "shared";
  WorkFolder folder_;
  std::string weights_;
};

TEST_F(Published, MapIsThatOfOtherPrograms) {
  struct Expected {
    const char* cfg;
    double map;
    int tp, fp;
  };
  for (const Expected& expected :
       {Expected{"net.cfg", 0.2913, 122, 146}, Expected{"boxed.cfg", 0.3075, 110, 150}}) {
    const Outcome outcome = folder_.run("detector map obj.data " + std::string(expected.cfg) +
                                        " '" + weights_ + "' -batch 4 -quiet --json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json json = parse_json(outcome.out);
    EXPECT_NEAR(json["map_with_truths"].get<double>(), expected.map, 1e-3) << expected.cfg;
    EXPECT_EQ(json["truth_count"], 488);
    // a score within rounding of the threshold may fall on the other side
    EXPECT_NEAR(json["tp"].get<int>(), expected.tp, 1) << expected.cfg;
    EXPECT_NEAR(json["fp"].get<int>(), expected.fp, 1) << expected.cfg;
  }
}

TEST_F(Published, DetectionsAreThoseOfAnotherEngine) {
  const std::filesystem::path expected_file = shared_ / "weights" / "expected" / (kName + ".json");
  const Outcome outcome =
      folder_.run("detector test obj.data net.cfg '" + weights_ + "' '" +
                  (shared_ / "data" / "test-images").string() + "' -batch 4 -quiet --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json found = parse_json(outcome.out);
  const nlohmann::json variant = parse_json(slurp(expected_file))["variants"]["align-stretch"];
  int compared = 0;
  for (const auto& image : found["images"]) {
    const std::string name = std::filesystem::path(image["path"].get<std::string>()).filename();
    const auto& images = variant.contains("images") ? variant["images"] : variant;
    ASSERT_TRUE(images.contains(name)) << name;
    const auto& wanted = images[name]["detections"];
    ASSERT_EQ(image["detections"].size(), wanted.size()) << name;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto& d = image["detections"][i];
      EXPECT_EQ(d["class_id"], wanted[i]["class_id"]) << name;
      EXPECT_NEAR(d["confidence"].get<double>(), wanted[i]["confidence"].get<double>(), 5e-3)
          << name;
      for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_NEAR(d["box"][k].get<double>(), wanted[i]["box_norm"][k].get<double>(), 2e-3)
            << name;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 26);
}

}  // namespace
}  // namespace lantern::cli
