#include <gtest/gtest.h>

#include "support.hpp"

namespace lantern::layers {
namespace {

using testing::load;

std::string messages(std::string_view keys) {
  return load(fmt::format("[net]\nwidth=8\nheight=8\nchannels=3\n{}[avgpool]\n", keys)).messages();
}
void expect_message(std::string_view keys, std::string_view part) {
  const std::string all = messages(keys);
  EXPECT_NE(all.find(part), std::string::npos) << "want: " << part << "\nhave: " << all;
}

TEST(NetSection, Defaults) {
  const auto loaded = load(
      "[network]\nwidth=16\nheight=8\nchannels=3\nsubdivisions=1\nmax_batches=50\n[avgpool]\n");
  ASSERT_EQ(loaded.messages(), "");
  const NetSpec& net = loaded.network.net;
  EXPECT_EQ(net.batch, 1);
  EXPECT_FLOAT_EQ(net.learning_rate, 0.001F);
  EXPECT_FLOAT_EQ(net.momentum, 0.9F);
  EXPECT_FLOAT_EQ(net.power, 4);
  EXPECT_EQ(net.max_crop, 32);
  EXPECT_EQ(net.min_crop, 16);
  EXPECT_EQ(net.inputs, 16 * 8 * 3);
  EXPECT_EQ(net.sgdr_cycle, 50);
  EXPECT_EQ(net.policy, Policy::kConstant);
  EXPECT_EQ(net.memory, "auto");
  EXPECT_EQ(net.on_nan, OnNan::kStop);
  EXPECT_EQ(net.mini_batch, 0);
}

TEST(NetSection, OurKeys) {
  const auto loaded = load(
      "[net]\nwidth=8\nheight=8\nchannels=3\nmemory=75%\nhost_memory=24G\ndisk_memory=/a b:100G\n"
      "max_slowdown=10%\nmini_batch=auto\nseed=9\nprecision=bf16\non_nan=rollback\n"
      "sampling=replacement\nmissing_labels=error\nexif=ignore\nbad_data_limit=5\n[avgpool]\n");
  ASSERT_EQ(loaded.messages(), "");
  const NetSpec& net = loaded.network.net;
  EXPECT_EQ(net.memory, "75%");
  EXPECT_EQ(net.disk_memory, "/a b:100G");
  EXPECT_FLOAT_EQ(net.max_slowdown, 10);
  EXPECT_EQ(net.mini_batch, -1);
  EXPECT_EQ(net.seed, 9);
  EXPECT_EQ(net.precision, Precision::kBf16);
  EXPECT_EQ(net.on_nan, OnNan::kRollback);
  EXPECT_EQ(net.sampling, Sampling::kReplacement);
  EXPECT_EQ(net.missing_labels, MissingLabels::kError);
  EXPECT_EQ(net.exif, Exif::kIgnore);
  expect_message("memory=lots\n",
                 "memory is 'lots', want auto, a size such as 6G or a share such as 75%");
  expect_message("host_memory=75%\n", "host_memory is '75%', want auto or a size");
  expect_message("disk_memory=100G\n", "disk_memory is '100G', want FOLDER:SIZE");
}

void expect_policy(const std::string& word, Policy policy) {
  const auto loaded =
      load("[net]\nwidth=8\nheight=8\nchannels=3\nmax_batches=9\npolicy=" + word + "\n[avgpool]\n");
  EXPECT_EQ(loaded.messages(), "");
  EXPECT_EQ(loaded.network.net.policy, policy) << word;
}

TEST(NetSection, ChecksPolicies) {
  expect_message("policy=steps\nsteps=1,2\nscales=.1\n",
                 "scales has 1 values, steps has 2 (net.cfg:6:1); give one per step");
  expect_message("policy=steps\nsteps=1\nscales=.1,.1\n",
                 "warning: [net] scales has 2 values, steps has 1; the rest is ignored");
  expect_message("policy=steps\nsteps=1,2\nscales=.1,.1\nseq_scales=2\n",
                 "seq_scales has 1 values");
  expect_message("policy=steps\n", "policy=steps needs steps=");
  expect_message("policy=steps\nsteps=1\n", "policy=steps needs scales=");
  expect_message(
      "policy=stepz\n",
      "policy is 'stepz', did you mean 'step'?; want one of constant, step, steps, exp, poly, "
      "random, sigmoid, sig, sgdr, cosine");
  expect_message("policy=step\nstep=0\n", "step is 0, policy=step wants >= 1");
  expect_message("policy=poly\n", "policy=poly needs max_batches >= 1");
  expect_message("policy=cosine\n", "policy=cosine needs max_batches >= 1");
  expect_policy("cosine", Policy::kCosine);
  expect_policy("sig", Policy::kSigmoid);
  expect_policy("sigmoid", Policy::kSigmoid);
  expect_message("policy=sgdr\n", "policy=sgdr needs sgdr_cycle or max_batches >= 1");
  expect_message("sgdr_mult=0\n", "sgdr_mult is 0, want >= 1");
  EXPECT_EQ(messages("policy=sgdr\nmax_batches=9\nsteps=1,2\n"), "");  // scales may be missing
}

TEST(NetSection, NeedsASize) {
  EXPECT_EQ(load("[net]\nwidth=8\n[avgpool]\n").messages(),
            "net.cfg:1:1: error: [net] width=8, height=0, channels=0: give all three, or inputs= "
            "for a network without "
            "images\n");
  const auto vector = load("[net]\ninputs=256\ntime_steps=5\nbatch=4\n[connected]\noutput=3\n");
  EXPECT_EQ(vector.messages(), "");
  EXPECT_EQ(vector.network.input(), (Dims{1, 1, 256}));
  EXPECT_EQ(vector.network.minibatch(), 20);
  EXPECT_EQ(vector.network.average_outputs(), 0);
}

TEST(NetSection, WarnsOfKeysThatDarknetSwallows) {
  expect_message("max_epochs=3\n", "warning: [net] has no key 'max_epochs'");
}

TEST(NetSection, OverridesReplaceKeysBeforeChecks) {
  const auto loaded = load(
      "[net]\nbatch=64\nsubdivisions=16\nwidth=8\nheight=8\nchannels=3\ntime_steps=4\n[avgpool]\n",
      {.width = 32, .height = 64, .batch = 6, .subdivisions = 2, .time_steps = 1});
  ASSERT_EQ(loaded.messages(), "");
  EXPECT_EQ(loaded.network.input(), (Dims{32, 64, 3}));
  EXPECT_EQ(loaded.network.minibatch(), 3);
  EXPECT_EQ(loaded.network.net.max_crop, 64);
}

TEST(NetSection, ResizedShapesTheSameNetworkAnew) {
  const auto loaded =
      load(testing::net(64, 64, "[convolutional]\nsize=3\nstride=2\npad=1\nfilters=4\n"));
  EXPECT_EQ(resized(loaded.network, 96, 32).layers[0].out, (Dims{48, 16, 4}));
  const auto valid = load(testing::net(64, 64, "[convolutional]\nsize=9\n"));
  EXPECT_THROW(resized(valid.network, 8, 64), Error);
}

TEST(NetSection, FrozenIsEverythingUpToTheLastStopbackward) {
  const auto loaded =
      load(testing::net(8, 8,
                        "[convolutional]\n[convolutional]\nstopbackward=1\n[convolutional]\n"
                        "stopbackward=800\n"));
  EXPECT_TRUE(loaded.network.layers[0].frozen);
  EXPECT_TRUE(loaded.network.layers[1].frozen);
  EXPECT_FALSE(loaded.network.layers[2].frozen);
}

TEST(NetSection, AFileWithErrorsThrowsOneErrorWithAllLines) {
  EXPECT_THROW(load_network_file((testing::data_dir() / "no-such-file.cfg").string()), Error);
  const Network network = load_network_file((testing::data_dir() / "yolov3-tiny.cfg").string());
  EXPECT_EQ(network.layers.size(), 24U);
}

}  // namespace
}  // namespace lantern::layers
