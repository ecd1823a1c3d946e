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
