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

TEST(Ops, AGroupSeesItsOwnChannels) {
  const WorkFolder folder;
  put(folder / "net.cfg",
      "[net]\nwidth=4\nheight=4\nchannels=8\n[convolutional]\nfilters=6\ngroups=2\nsize=1\n");
  const Outcome outcome = folder.run("ops net.cfg");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // 16 places, 6 filters, 4 channels each, multiply and add
  EXPECT_TRUE(outcome.prints("Floating Point Operations: 768\n")) << outcome.out;
  EXPECT_TRUE(outcome.prints("    0 convolutional                  768\n")) << outcome.out;
}

TEST(Average, OfOneFileTwiceIsThatFile) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run("average net.cfg mean.weights fix.weights fix.weights");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(slurp(folder / "mean.weights"), slurp(folder / "fix.weights"));
  put(folder / "cut.weights", slurp(folder / "fix.weights").substr(0, 100));
  const Outcome cut = folder.run("average net.cfg out.weights fix.weights cut.weights");
  EXPECT_EQ(cut.code, 3);
  EXPECT_TRUE(cut.says("cut.weights")) << cut.err;
  EXPECT_FALSE(folder.has("out.weights"));
  EXPECT_EQ(folder.run("average net.cfg out.weights fix.weights").code, 2) << "of one";
}

TEST(Denormalize, WritesWeightsAndTheCfgThatFitsThem) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run("denormalize net.cfg fix.weights plain.weights");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(folder.run("partial plain.cfg plain.weights start.weights 1").code, 0);
  const Outcome over = folder.run("denormalize net.cfg fix.weights net.weights");
  EXPECT_EQ(over.code, 2);
  EXPECT_TRUE(over.says("net.cfg would be written over what is read")) << over.err;
  EXPECT_EQ(folder.run("denormalize net.cfg fix.weights fix.weights plain.cfg").code, 2);
  EXPECT_EQ(folder.run("denormalize net.cfg fix.weights a.weights b.cfg").code, 0);
  EXPECT_EQ(slurp(folder / "b.cfg"), slurp(folder / "plain.cfg"));
}

TEST(Speed, IsAMedianAndItsInverse) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run("speed net.cfg 5 -batch 3 -threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("5 evaluations of 3 images, 2 to warm up")) << outcome.out;
  const auto number = [&](const std::string& behind) {
    const std::size_t end = outcome.out.find(behind);
    const std::size_t start = outcome.out.rfind("Speed: ", end) + 7;
    return std::stod(outcome.out.substr(start, end - start));
  };
  EXPECT_GT(number(" sec/eval (median)"), 0) << outcome.out;
  EXPECT_GT(number(" Hz"), 0) << outcome.out;
  for (const char* tics : {"0", "-3", "many"})
    EXPECT_EQ(folder.run("speed net.cfg " + std::string(tics)).code, 2) << tics;
}

}  // namespace
}  // namespace lantern::cli
