#include <array>

#include "cli/program.hpp"

namespace lantern::cli {
namespace {

TEST(Bench, MeasuresTrainingInThePlannedArena) {
  const WorkFolder folder("39-no-display");
  const Outcome outcome =
      folder.run("bench net.cfg --train --mini-batch 2 --iterations 3 --threads 1 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json json = parse_json(outcome.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["seconds"].size(), 3U);
  EXPECT_GT(json["images_per_second"].get<double>(), 0);
  EXPECT_GT(json["peak_rss_bytes"].get<std::int64_t>(), json["planned_bytes"].get<std::int64_t>());
  EXPECT_FALSE(json["layers"].empty());
  const nlohmann::json plan =
      parse_json(folder.run("plan net.cfg --mini-batch 2 --threads 1 --json").out);
  EXPECT_EQ(plan["rows"][0]["device_bytes"], json["planned_bytes"]);
}

TEST(Bench, MeasuresInference) {
  const WorkFolder folder("39-no-display");
  const Outcome outcome = folder.run("bench net.cfg --batch 3 --iterations 2 --json=b.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("images per second"));
  EXPECT_TRUE(outcome.prints("by layer"));
  EXPECT_TRUE(outcome.prints("by op and kernel"));
  const nlohmann::json json = parse_json(slurp(folder / "b.json"));
  EXPECT_EQ(json["mode"], "inference");
  EXPECT_EQ(json["images"], 3);
}

TEST(Bench, RefusesWhatDoesNotFit) {
  const WorkFolder folder("39-no-display");
  std::string cfg = slurp(folder / "net.cfg");
  for (const char* side : {"width=64", "height=64"}) {
    const std::size_t at = cfg.find(side);
    ASSERT_NE(at, std::string::npos);
    cfg.insert(at + std::string(side).size(), "00");
  }
  put(folder / "net.cfg", cfg);
  const Outcome outcome = folder.run("bench net.cfg --batch 4096 --iterations 1");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(outcome.says("this process may use")) << outcome.err;
  EXPECT_TRUE(folder.run("plan net.cfg --mini-batch 8192").prints("does NOT fit"));
}

TEST(Bench, HasARowForEverySizeAndNumberOfImages) {
  const WorkFolder folder("39-no-display");
  const Outcome outcome =
      folder.run("bench net.cfg --size 512,64x96 --batch 4,1 --iterations 3 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.says("512x512")) << outcome.err;
  EXPECT_FALSE(outcome.says("by layer"));
  const nlohmann::json json = parse_json(outcome.out);
  EXPECT_FALSE(json.contains("seconds")) << "one row's figures beside those of four";
  ASSERT_EQ(json["rows"].size(), 4U);
  const std::vector<std::array<int, 3>> expected{
      {512, 512, 4}, {512, 512, 1}, {64, 96, 4}, {64, 96, 1}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const nlohmann::json& row = json["rows"][i];
    const std::array<int, 3> is{row["width"].get<int>(), row["height"].get<int>(),
                                row["images"].get<int>()};
    EXPECT_EQ(is, expected[i]);
    EXPECT_EQ(row["seconds"].size(), 3U);
    EXPECT_TRUE(row["layers"].empty());
    const double median = row["median_seconds"];
    EXPECT_LE(row["quartile_seconds"][0].get<double>(), median);
    EXPECT_GE(row["quartile_seconds"][1].get<double>(), median);
    EXPECT_NEAR(row["images_per_second"].get<double>() * median, row["images"].get<double>(), 1e-6);
    EXPECT_GT(row["peak_rss_bytes"].get<std::int64_t>(), row["planned_bytes"].get<std::int64_t>());
  }
  // Operations are those of the images, whatever the time.
  const auto flops = [&](std::size_t i) {
    const nlohmann::json& row = json["rows"][i];
    return row["gflop_per_second"].get<double>() * row["median_seconds"].get<double>();
  };
  EXPECT_NEAR(flops(0) / flops(1), 4, 0.1);
  EXPECT_GT(flops(1), 20 * flops(3));
  EXPECT_GT(json["rows"][0]["planned_bytes"], json["rows"][1]["planned_bytes"]);
  // Peaks are those of the rows, not of all before.
  if (outcome.says("restarts no peaks")) GTEST_SKIP() << "the system restarts no peaks";
  EXPECT_LT(json["rows"][3]["peak_rss_bytes"], json["rows"][0]["peak_rss_bytes"]);
}

TEST(Bench, CountsTheOperationsOfTheNetwork) {
  const WorkFolder folder;
  // 2 * 3 * 3 * 16 * 32 * 24 * 24 operations.
  put(folder / "one.cfg",
      "[net]\nwidth=24\nheight=24\nchannels=16\n"
      "[convolutional]\nfilters=32\nsize=3\npad=1\nactivation=linear\n");
  const Outcome outcome = folder.run("bench one.cfg --iterations 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json json = parse_json(outcome.out);
  const double flops =
      1e9 * json["gflop_per_second"].get<double>() * json["median_seconds"].get<double>();
  EXPECT_NEAR(flops, 2.0 * 9 * 16 * 32 * 24 * 24, 0.02 * flops);
  double share = 0;
  for (const nlohmann::json& row : json["layers"]) share += row["share"].get<double>();
  EXPECT_NEAR(share, 1, 1e-6);
}

TEST(Bench, TellsLayersOfEveryRowWhenAsked) {
  const WorkFolder folder("39-no-display");
  const Outcome outcome = folder.run("bench net.cfg --train --batch 1,2 --iterations 1 --layers");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("64x64, 1 images, by layer")) << outcome.out;
  EXPECT_TRUE(outcome.prints("64x64, 2 images, by layer"));
  EXPECT_TRUE(outcome.prints("- update"));
  EXPECT_TRUE(outcome.prints("conv_backward_weights ["));
}

TEST(Bench, RunsWithTheWeightsOfAFile) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run("bench net.cfg fix.weights --iterations 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string weights = slurp(folder / "fix.weights");
  put(folder / "cut.weights", weights.substr(0, weights.size() - 4));
  EXPECT_EQ(folder.run("bench net.cfg cut.weights --iterations 1").code, 3);
}

TEST(Bench, RefusesWhatItCannotRead) {
  const WorkFolder folder("39-no-display");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--size 64,x", "-size is '64,x'"}, {"--size 64x64x64", "-size is"},
      {"--size 0", "-size is"},           {"--batch 1,,2", "-batch is '1,,2'"},
      {"--batch 0", "-batch is '0'"},     {"--batch 2 --mini_batch 2 --train", "give one of them"},
  };
  for (const auto& [flags, message] : cases) {
    const Outcome outcome = folder.run("bench net.cfg " + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_TRUE(outcome.says(message)) << flags << outcome.err;
    EXPECT_EQ(outcome.out, "") << flags;
  }
  put(folder / "vector.cfg", "[net]\ninputs=8\n[connected]\noutput=4\n");
  const Outcome vector = folder.run("bench vector.cfg --size 64");
  EXPECT_EQ(vector.code, 2);
  EXPECT_TRUE(vector.says("reads 8 numbers, no pictures")) << vector.err;
  EXPECT_EQ(folder.run("bench vector.cfg --iterations 1").code, 0);
}

}  // namespace
}  // namespace lantern::cli
