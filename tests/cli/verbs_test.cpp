#include "cli/program.hpp"

namespace lantern::cli {
namespace {

TEST(Dump, EveryStageHasText) {
  const WorkFolder folder("39-no-display");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"cfg", "filters=21"}, {"graph", "yolo"},       {"training", "conv_backward_weights"},
      {"kernels", "onednn"}, {"program", "PROGRAM "},
  };
  for (const auto& [stage, word] : cases) {
    const Outcome outcome = folder.run("dump --stage " + stage + " net.cfg");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_GT(outcome.out.size(), 400U) << stage;
    EXPECT_TRUE(outcome.prints(word)) << stage;
    EXPECT_EQ(outcome.out, folder.run("dump net.cfg -stage=" + stage).out) << "not the same twice";
  }
  const Outcome wrong = folder.run("dump --stage kernel net.cfg");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(wrong.says("did you mean kernels?"));
}

TEST(Dump, StagesDiffer) {
  const WorkFolder folder("39-no-display");
  const std::string inference = folder.run("dump --stage graph net.cfg").out;
  const std::string training = folder.run("dump --stage training net.cfg").out;
  EXPECT_NE(inference, training);
  EXPECT_GT(training.size(), inference.size());
}

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

TEST(Partial, KeepsTheFirstLayersAndForgetsSeen) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run("partial net.cfg fix.weights out.weights 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string whole = slurp(folder / "fix.weights"), part = slurp(folder / "out.weights");
  ASSERT_EQ(part.size(), whole.size());  // the second layer has no weights
  EXPECT_EQ(part.substr(20), whole.substr(20));
  EXPECT_EQ(part.substr(12, 8), std::string(8, '\0'));
  for (const char* n : {"0", "3", "x", "-1"}) {
    EXPECT_EQ(folder.run("partial net.cfg fix.weights out2.weights " + std::string(n)).code, 2)
        << n;
  }
  EXPECT_FALSE(folder.has("out2.weights"));
}

TEST(Ops, CountsEveryLayer) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run("ops net.cfg");
  // one 32x32 window over 3 channels, 6 filters, multiply and add
  EXPECT_TRUE(outcome.prints("Floating Point Operations: 36864\n")) << outcome.out;
  EXPECT_TRUE(outcome.prints("Floating Point Operations: 0.00 Bn\n"));
}

}  // namespace
}  // namespace lantern::cli
