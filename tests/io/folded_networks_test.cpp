// Stock networks as programs that only infer, with folded batch norms and convolutions of our own,
// against the same weights in the convolutions of the library.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>
#include <string>

#include "core/rng.hpp"
#include "io/model_weights.hpp"
#include "io/trained_model.hpp"
#include "names.hpp"
#include "ops/conv/own_conv.hpp"

namespace lantern::io {
namespace {

constexpr int kSize = 256;
constexpr int kThreads = 2;

struct Case {
  std::string name;
  std::vector<std::string> kernels;  ///< that it must run, where the CPU has AVX-512
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// What feeds the heads.
std::vector<std::vector<float>> raw_heads(exec::Model& model) {
  const layers::Network& network = model.network();
  Rng rng(6, "picture");
  std::vector<float> image(static_cast<std::size_t>(network.input().elements()));
  for (float& value : image) value = rng.uniform();
  model.forward(image);
  std::vector<std::vector<float>> heads;
  for (const layers::Layer& layer : network.layers) {
    if (layer.section != "yolo") continue;
    heads.push_back(model.executor().read(
        *model.lowered().forward_outputs[static_cast<std::size_t>(layer.index) - 1]));
  }
  return heads;
}

class FoldedNetworks : public ::testing::TestWithParam<Case> {};

TEST_P(FoldedNetworks, GiveWhatTheyGiveUnfolded) {
  const std::string cfg = std::string(LANTERN_TEST_DATA) + "/cfg/" + GetParam().name + ".cfg";
  const layers::Network network = layers::resized(
      layers::load_network_file(cfg, {.batch = 1, .subdivisions = 1}), kSize, kSize);
  const auto path =
      std::filesystem::path(::testing::TempDir()) / ("folded_" + GetParam().name + ".weights");
  std::vector<std::vector<float>> want;
  {
    exec::Model plain(network, {.threads = kThreads, .plan = {.keep_everything = true}});
    fill_as_trained(plain, 1, Rng(5, "folded networks"), 0.2F);
    save_weights(plain, path, {});
    want = raw_heads(plain);
  }
  exec::Model folded(network,
                     {.threads = kThreads, .plan = {.keep_everything = true}, .fold = true});
  Diagnostics warnings;
  load_weights(folded, path, Purpose::kEvaluation, warnings);
  std::filesystem::remove(path);
  const std::vector<std::vector<float>> got = raw_heads(folded);

  ASSERT_EQ(got.size(), want.size());
  ASSERT_FALSE(got.empty());
  for (std::size_t head = 0; head < got.size(); ++head) {
    ASSERT_EQ(got[head].size(), want[head].size());
    float largest = 0, worst = 0;
    for (std::size_t i = 0; i < got[head].size(); ++i) {
      ASSERT_TRUE(std::isfinite(want[head][i]));
      largest = std::max(largest, std::abs(want[head][i]));
      worst = std::max(worst, std::abs(got[head][i] - want[head][i]));
    }
    EXPECT_GT(largest, 0.01F) << "head " << head << " sees the picture";
    EXPECT_LE(worst, 1e-4F * largest) << "head " << head;
  }
  if (ops::kOwnConvIsFast && ops::preferred_block() == 16) {
    for (const std::string& kernel : GetParam().kernels) {
      EXPECT_TRUE(
          std::ranges::any_of(folded.executor().selected().ops,
                              [&](const graph::SelectedOp& op) { return op.kernel == kernel; }))
          << kernel;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stock, FoldedNetworks,
    ::testing::Values(Case{"yolov3-tiny", {"winograd:4x4"}}, Case{"yolov4-tiny", {"winograd:4x4"}},
                      Case{"yolov7-tiny", {"winograd:4x4"}}, Case{"enet-coco", {"winograd:4x4"}},
                      Case{"csresnext50-panet-spp", {"winograd:4x4", "grouped"}}),
    test::kByName);

}  // namespace
}  // namespace lantern::io
