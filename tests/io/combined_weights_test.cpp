// Weights files made of others: the mean of several, and batch norms folded into weights.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>

#include "core/file.hpp"
#include "core/rng.hpp"
#include "io/average.hpp"
#include "io/denormalize.hpp"
#include "io/model_weights.hpp"
#include "io/trained_model.hpp"
#include "names.hpp"

namespace lantern::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNet = "[net]\nwidth=8\nheight=8\nchannels=4\nbatch=1\n";

struct Case {
  std::string name, sections;
  int norms = 1;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {"convolutional",
       "[convolutional]\nbatch_normalize=1 # kept\nfilters=6\nsize=3\npad=1\nactivation=leaky\n"},
      {"groups",
       "[convolutional]\nfilters=8\n batch_normalize = 2\nsize=3\ngroups=4\nactivation=mish\n"
       "[convolutional]\nfilters=8\ngroups=8\ncbn=1\nsize=3\nactivation=mish\n",
       2},
      {"shared",
       "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\npad=1\nactivation=mish\n"
       "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\npad=1\nactivation=mish\n"
       "share_index=0\n[convolutional]\nfilters=2\nsize=1\nactivation=linear\n"},
      {"connected", "[connected]\nbatch_normalize=1\noutput=7\nactivation=leaky\n"},
      {"batchnorm",
       "[convolutional]\nfilters=6\nsize=3\nactivation=linear\n[batchnorm]\n[convolutional]\n"
       "batch_normalize=1\nfilters=2\nsize=1\nactivation=logistic\n"},
      {"local", "[local]\nfilters=3\nsize=3\nactivation=leaky\n", 0},
      {"rnn", "[rnn]\nbatch_normalize=1\noutput=5\nhidden=6\nactivation=leaky\n", 3},
      {"gru", "[gru]\nbatch_normalize=1\noutput=5\n", 6},
      {"lstm", "[lstm]\nbatch_normalize=1\noutput=5\n", 8},
      {"crnn", "[crnn]\nbatch_normalize=1\noutput=5\nhidden=6\nsize=3\npad=1\nactivation=leaky\n",
       3},
      {"conv_lstm", "[conv_lstm]\nbatch_normalize=1\noutput=4\nsize=3\npad=1\npeephole=1\n", 11},
  };
  return kCases;
}

layers::Network load(const std::string& text) {
  Diagnostics diagnostics;
  layers::Network network = layers::load_network("net.cfg", text, diagnostics);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  return network;
}

fs::path work_file(const std::string& name) {
  std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ranges::replace(test, '/', '_');
  const fs::path folder = fs::path(::testing::TempDir()) / ("combined_" + test);
  fs::create_directories(folder);
  return folder / name;
}

// A weights file as a training may leave it.
void write_trained(const layers::Network& network, const fs::path& path, std::uint64_t seed) {
  exec::Model model(network, {.forward_batch = 1});
  fill_as_trained(model, seed, Rng(seed, "trained"), 0.3F);
  save_weights(model, path, {.seen = 64 * seed});
}

std::vector<float> outputs(const layers::Network& network, const fs::path& weights) {
  exec::Model model(network, {.forward_batch = 2});
  Diagnostics warnings;
  load_weights(model, weights, Purpose::kEvaluation, warnings);
  Rng rng(3, "pictures");
  std::vector<float> images(static_cast<std::size_t>(2 * network.input().elements()));
  for (float& value : images) value = rng.uniform();
  model.forward(images);
  return model.executor().read(*model.lowered().forward_outputs.back());
}

class CombinedWeights : public ::testing::TestWithParam<Case> {};

TEST_P(CombinedWeights, WithoutNormsTheNetworkComputesTheSame) {
  const std::string text = kNet + GetParam().sections;
  const layers::Network network = load(text);
  const fs::path given = work_file("given.weights"), plain = work_file("plain.weights");
  write_trained(network, given, 4);
  Diagnostics warnings;
  const Denormalized result = denormalize("net.cfg", text, given, plain, warnings);
  EXPECT_EQ(result.folded, GetParam().norms);
  EXPECT_EQ(result.kept, GetParam().name == "batchnorm" ? 1 : 0);
  EXPECT_TRUE(warnings.entries().empty());
  const layers::Network after = load(result.cfg);
  EXPECT_EQ(std::ranges::count(result.cfg, '\n'), std::ranges::count(text, '\n'));
  if (GetParam().name == "convolutional") {
    EXPECT_NE(result.cfg.find("batch_normalize=0 # kept\n"), std::string::npos) << result.cfg;
  }
  for (const layers::Layer& layer : after.layers) {
    for (const layers::ParameterArray& array : layers::parameter_arrays(layer))
      EXPECT_TRUE(layer.section == "batchnorm" || !array.name.ends_with("rolling_mean"));
  }
  EXPECT_EQ(read_weights_header(plain).seen, 256U);
  const std::vector<float> want = outputs(network, given), got = outputs(after, plain);
  ASSERT_EQ(want.size(), got.size());
  float largest = 0;
  for (const float value : want) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(want[i], got[i], 1e-5F * std::max(1.0F, largest)) << i;
}

TEST_P(CombinedWeights, TheMeanIsThatOfEveryNumber) {
  const layers::Network network = load(kNet + GetParam().sections);
  const WeightsLayout layout = weights_layout(network);
  const std::vector<fs::path> files{work_file("1.weights"), work_file("2.weights"),
                                    work_file("3.weights")};
  Diagnostics warnings;
  std::vector<WeightsValues> all;
  for (std::size_t f = 0; f < files.size(); ++f) {
    write_trained(network, files[f], f + 1);
    all.push_back(read_weights(files[f], layout, Purpose::kEvaluation, warnings).values);
  }
  const Weights mean = average_weights(files, layout, warnings);
  EXPECT_EQ(mean.header.seen, 64U);
  ASSERT_EQ(mean.values.size(), layout.size());
  for (std::size_t i = 0; i < layout.size(); ++i) {
    ASSERT_EQ(mean.values[i].size(), layout[i].arrays.size());
    for (std::size_t k = 0; k < layout[i].arrays.size(); ++k) {
      ASSERT_EQ(mean.values[i][k].size(), static_cast<std::size_t>(layout[i].arrays[k].count));
      for (std::size_t v = 0; v < mean.values[i][k].size(); ++v) {
        const double want =
            (double{all[0][i][k][v]} + double{all[1][i][k][v]} + double{all[2][i][k][v]}) / 3;
        ASSERT_EQ(mean.values[i][k][v], static_cast<float>(want)) << layout[i].arrays[k].name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sections, CombinedWeights, ::testing::ValuesIn(cases()), test::kByName);

TEST(Denormalize, RefusesWeightsThatAreInNoFile) {
  const std::string text =
      std::string(kNet) + "[convolutional]\nfilters=2\nsize=1\nbatch_normalize=1\ndontload=1\n";
  Diagnostics warnings;
  try {
    denormalize("net.cfg", text, "none.weights", "out.weights", warnings);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_NE(std::string(error.what()).find("dontload=1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lantern::io
