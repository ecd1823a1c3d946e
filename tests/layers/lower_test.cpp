// What lowering makes of sections whose meaning is not that of a single op.

#include "layers/lower.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "exec/model.hpp"

namespace lantern::layers {
namespace {

Network load(const std::string& layers) {
  Diagnostics diagnostics;
  Network network = load_network(
      "net.cfg",
      "[net]\nwidth=4\nheight=4\nchannels=2\nbatch=2\nlearning_rate=0.1\nmax_batches=10\n" + layers,
      diagnostics);
  for (const auto& entry : diagnostics.entries()) ADD_FAILURE() << entry.to_string();
  return network;
}

std::string refusal(const std::string& layers, bool training = true) {
  try {
    lower(load(layers), {.training = training, .mini_batch = 2, .forward_batch = training ? 0 : 1});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.message();
  }
  return "";
}

const std::string kConv = "[convolutional]\nfilters=3\nsize=1\nactivation=linear\n";

std::int64_t count(const Lowered& lowered, std::string_view op,
                   graph::ProgramKind program = graph::ProgramKind::kMiniBatch) {
  return std::ranges::count_if(lowered.graph.ops(), [&](const graph::Op& o) {
    return o.def->name == op && o.program == program;
  });
}

TEST(LowerDropout, LaterReadersOfTheLayerBeforeSeeTheDroppedValuesInTraining) {
  const Lowered lowered = lower(
      load(kConv +
           "[dropout]\nprobability=0.5\n[dropout]\nprobability=0.2\n[route]\nlayers=0\n[cost]\n"),
      {.training = true, .mini_batch = 2, .forward_batch = 1});
  EXPECT_EQ(lowered.outputs[0], lowered.outputs[2]);
  EXPECT_EQ(lowered.outputs[1], lowered.outputs[2]);
  EXPECT_EQ(lowered.outputs[3], lowered.outputs[2]);
  EXPECT_EQ(lowered.forward_outputs[0], lowered.forward_outputs[2]);
  EXPECT_EQ(count(lowered, "dropout"), 2);  // of the mini-batch program; inference has none
  EXPECT_EQ(count(lowered, "dropout_backward"), 2);
  EXPECT_EQ(count(lowered, "dropout", graph::ProgramKind::kForward), 0);
}

std::string conv(int filters) {
  return "[convolutional]\nbatch_normalize=1\nfilters=" + std::to_string(filters) +
         "\nsize=1\nactivation=mish\n";
}

// The halves of a split map are joined behind their batch norms, a smaller map is enlarged into a
// join, half of the channels feed a convolution: nothing of that is copied.
TEST(LowerRoute, JoinsAndGroupsAreNotCopies) {
  const std::string net = conv(32) + conv(16) + "[route]\nlayers=-2\n" + conv(16) +
                          "[route]\nlayers=-1,-3\n" +                                // 4
                          "[route]\nlayers=-1\ngroups=2\ngroup_id=1\n" + conv(16) +  // 6
                          "[maxpool]\nsize=2\nstride=2\n[upsample]\nstride=2\n" +    // 8
                          "[route]\nlayers=-1,4\n" + conv(3) + "[cost]\n";
  const LowerOptions options{.training = true, .mini_batch = 2, .forward_batch = 1};
  const Lowered fused = lower(load(net), options);
  EXPECT_EQ(count(fused, "concat"), 2);
  EXPECT_EQ(count(fused, "upsample"), 0);
  EXPECT_EQ(count(fused, "batch_norm_apply"), 2);  // layers 0 and 10; 6 goes into its pool
  EXPECT_EQ(count(fused, "concat_backward"),
            2);  // the slice of layer 4, and layer 4 in the last join
  LowerOptions separate = options;
  separate.fuse_layers = false;
  const Lowered plain = lower(load(net), separate);
  EXPECT_EQ(count(plain, "concat"), 3);
  EXPECT_EQ(count(plain, "batch_norm_apply"), 5);
}

TEST(LowerRoute, WhatDoesNotEndWithAChannelBlockIsCopied) {
  const LowerOptions options{.training = true, .mini_batch = 2, .forward_batch = 0};
  const Lowered end =
      lower(load(conv(24) + conv(12) + "[route]\nlayers=-1,-2\n" +
                 "[route]\nlayers=-1\ngroups=3\ngroup_id=1\n" + conv(8) + "[cost]\n"),
            options);
  EXPECT_EQ(count(end, "concat"), 2);
  EXPECT_EQ(count(end, "batch_norm_apply"), 3);
  const Lowered begin =
      lower(load(conv(24) + conv(16) + "[route]\nlayers=-2,-1\n" + conv(8) + "[cost]\n"), options);
  EXPECT_EQ(count(begin, "batch_norm_apply"), 3);
}

// Darknet adds the channels that both maps have; that is no epilogue of a convolution.
TEST(LowerShortcut, OfOtherShapesStaysAnOpOfItsOwn) {
  for (const int filters : {16, 32}) {
    const Network network =
        load(conv(16) + conv(filters) + "[shortcut]\nfrom=-2\nactivation=linear\n[cost]\n");
    const bool folds = filters == 16;
    const Lowered training =
        lower(network, {.training = true, .mini_batch = 2, .forward_batch = 0});
    EXPECT_EQ(count(training, "add"), folds ? 0 : 1);
    const Lowered inference = lower(network, {.forward_batch = 1, .fold = true});
    EXPECT_EQ(count(inference, "add", graph::ProgramKind::kForward), folds ? 0 : 1);
  }
}

TEST(LowerNet, KeysThatWouldChangeResultsAreRefusedByName) {
  const std::string body = kConv + "[cost]\n";
  for (const char* line : {"freeze_bn=1", "unsupervised=1", "resize_mode=same", "adversarial_lr=1",
                           "weights_reject_freq=10", "precision=bf16"}) {
    const std::string text = line;
    const std::string key = text.substr(0, text.find('='));
    EXPECT_NE(refusal(text + "\n" + body).find("[net] " + key), std::string::npos) << line;
  }
  for (const char* line : {"memory=6G", "mini_batch=2", "optimized_memory=3", "try_fix_nan=1"}) {
    EXPECT_EQ(refusal(line + ("\n" + body)), "") << line;
  }
  EXPECT_NE(refusal("resize_mode=same\n" + body, false), "");
}

TEST(LowerCost, IsRefusedWhereSomebodyReadsIt) {
  EXPECT_NE(refusal(kConv + "[cost]\n" + kConv).find("[cost]"), std::string::npos);
  EXPECT_NE(refusal(kConv + "[cost]\n[route]\nlayers=-1\n").find("[cost]"), std::string::npos);
  EXPECT_EQ(refusal(kConv + "[cost]\n"), "");
  EXPECT_EQ(refusal(kConv + "[cost]\n[route]\nlayers=0\n[cost]\n"), "");
}

TEST(LowerEmpty, IsAnotherNameForTheLayerBefore) {
  const Lowered lowered = lower(load(kConv + "[empty]\n[cost]\n"),
                                {.training = true, .mini_batch = 2, .forward_batch = 1});
  EXPECT_EQ(lowered.outputs[1], lowered.outputs[0]);
  EXPECT_EQ(lowered.forward_outputs[1], lowered.forward_outputs[0]);
}

TEST(LowerTruth, IsRefusedWhereTwoLossesWantOtherLengths) {
  EXPECT_NE(
      refusal(kConv + "[cost]\n[route]\nlayers=0\n[avgpool]\n[softmax]\n").find("truth values"),
      std::string::npos);
}

TEST(LowerConnected, ClampsTheGradientOfItsOutput) {
  exec::Model model(load("[connected]\noutput=5\nactivation=linear\n[cost]\n"),
                    {.training = true, .mini_batch = 2, .forward_batch = 0});
  const std::vector<float> images(2 * 32, 0.5F);
  std::vector<float> truth(2 * 5, 0.25F);
  truth[0] = 100;
  truth[6] = -100;
  model.run_mini_batch(images, truth, {});
  ASSERT_EQ(model.lowered().parameters[0].array, "biases");
  const std::vector<float> gradient =
      model.executor().read(*model.lowered().parameters[0].gradient);
  // Weights and biases are 0: the delta is the truth, clamped to [-1, 1], summed over both images.
  EXPECT_EQ(gradient, (std::vector<float>{1.25F, -0.75F, 0.5F, 0.5F, 0.5F}));
}

TEST(LowerAdam, KeepsTwoMomentsOfEveryTrainedArray) {
  Network network = load(kConv + "[cost]\n");
  network.net.adam = 1;
  const Lowered lowered = lower(network, {.training = true, .mini_batch = 2, .forward_batch = 0});
  for (const ParameterBinding& binding : lowered.parameters) {
    EXPECT_TRUE(binding.momentum.has_value()) << binding.array;
    EXPECT_TRUE(binding.second_moment.has_value()) << binding.array;
  }
}

TEST(LowerAdam, BothMomentsStayForAModelAtAnotherSize) {
  Network network = load(kConv + "[cost]\n");
  network.net.adam = 1;
  exec::ModelOptions options{.training = true, .mini_batch = 2, .forward_batch = 0};
  std::vector<float> images(2 * 32);
  std::vector<float> truth(2 * 48);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 7) / 7;
  for (std::size_t i = 0; i < truth.size(); ++i) truth[i] = static_cast<float>(i % 5) - 2;
  const auto update = [&](exec::Model& model, std::int64_t iteration) {
    const ops::RunContext run{.iteration = iteration, .learning_rate = 0.1F, .batch = 2};
    model.run_mini_batch(images, truth, run);
    model.update(run);
  };
  exec::Model first(network, options);
  first.initialise(1);
  for (const std::int64_t i : {1, 2, 3}) update(first, i);

  const Network larger = resized(network, 8, 8);
  const exec::SharedState shared = exec::state_of(exec::compile(network, options));
  const auto arena = std::make_shared<device::Arena>(Bytes{1 << 20});
  options.executor = [&](const plan::Program& program) {
    EXPECT_LE(program.arena_bytes, arena->bytes());
    return exec::ExecutorOptions{.arena = arena};
  };
  exec::Model before(network, options);
  before.initialise(1);
  for (const std::int64_t i : {1, 2}) update(before, i);
  options.shared = shared;
  const exec::Model between(larger, options);  // of another size, made in between
  EXPECT_EQ(between.executor().read(between.lowered().parameters[0].tensor),
            before.executor().read(before.lowered().parameters[0].tensor));
  exec::Model after(network, options);
  update(after, 3);
  for (const ParameterBinding& binding : first.lowered().parameters) {
    EXPECT_EQ(first.executor().read(binding.tensor), after.executor().read(binding.tensor))
        << binding.array;
  }
}

}  // namespace
}  // namespace lantern::layers
