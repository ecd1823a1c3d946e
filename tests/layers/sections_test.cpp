// Sections and keys that few networks have: what lowering makes of them, trained for a step or two.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "exec/model.hpp"
#include "layers/lower.hpp"

namespace lantern::layers {
namespace {

constexpr std::int64_t kImages = 2;

Network load(const std::string& layers, int side = 8) {
  Diagnostics diagnostics;
  Network network = load_network("net.cfg",
                                 fmt::format("[net]\nwidth={0}\nheight={0}\nchannels=3\nbatch=2\n"
                                             "learning_rate=0.1\nmomentum=0.5\nmax_batches=10\n{1}",
                                             side, layers),
                                 diagnostics);
  for (const auto& entry : diagnostics.entries()) ADD_FAILURE() << entry.to_string();
  return network;
}

std::string refusal(const std::string& layers, bool training = true) {
  try {
    lower(load(layers),
          {.training = training, .mini_batch = kImages, .forward_batch = training ? 0 : 1});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.message();
  }
  return "";
}

// A network in training with values that do not repeat.
class Trained {
 public:
  explicit Trained(const Network& network)
      : model_(network, {.training = true,
                         .mini_batch = kImages,
                         .forward_batch = kImages,
                         .plan = {.keep_everything = true}}) {
    model_.initialise(3);
    images_.resize(static_cast<std::size_t>(kImages * network.input().elements()));
    for (std::size_t i = 0; i < images_.size(); ++i)
      images_[i] = 0.5F + 0.5F * std::sin(0.7F * static_cast<float>(i));
    const auto floats = static_cast<std::size_t>(model_.lowered().truth_floats);
    truth_.resize(kImages * floats);
    for (std::size_t i = 0; i < truth_.size(); ++i)
      truth_[i] = std::cos(0.3F * static_cast<float>(i));
  }
  float rate = 0.1F;
  exec::Model& model() { return model_; }
  std::vector<float>& truth() { return truth_; }
  std::vector<float>& images() { return images_; }
  void run(std::int64_t iteration = 1, int subdivision = 0) {
    model_.run_mini_batch(images_, truth_, context(iteration, subdivision));
  }
  void update(std::int64_t iteration = 1) { model_.update(context(iteration, 0)); }
  std::vector<float> output(int layer) {
    return model_.executor().read(*model_.lowered().outputs[static_cast<std::size_t>(layer)]);
  }
  std::vector<float> forward(int layer) {
    model_.forward(images_);
    return model_.executor().read(
        *model_.lowered().forward_outputs[static_cast<std::size_t>(layer)]);
  }
  const ParameterBinding& binding(int layer, const std::string& array) {
    return *std::ranges::find_if(model_.lowered().parameters, [&](const ParameterBinding& b) {
      return b.layer == layer && b.array == array;
    });
  }
  std::vector<float> parameter(int layer, const std::string& array) {
    return model_.executor().read(binding(layer, array).tensor);
  }
  std::vector<float> gradient(int layer, const std::string& array) {
    return model_.executor().read(*binding(layer, array).gradient);
  }

 private:
  ops::RunContext context(std::int64_t iteration, int subdivision) const {
    return {.iteration = iteration,
            .subdivision = subdivision,
            .learning_rate = rate,
            .momentum = 0.5F,
            .batch = 2,
            .max_iterations = 10};
  }
  exec::Model model_;
  std::vector<float> images_, truth_;
};

const std::string kConv = "[convolutional]\nfilters=3\nsize=1\nactivation=linear\n";

void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(LowerImplicit, StartsAroundItsMeanAndLearns) {
  Trained net(load("[implicit]\nfilters=40\natoms=2\nmean=3\nstd=0.5\n[cost]\n"));
  const std::vector<float> start = net.parameter(0, "weights");
  EXPECT_LT(*std::ranges::max_element(start), 3.5F);
  EXPECT_GT(*std::ranges::max_element(start), 3.3F);
  EXPECT_GT(*std::ranges::min_element(start), 2.5F);
  EXPECT_LT(*std::ranges::min_element(start), 2.7F);
  net.run();
  std::vector<float> twice = start;
  twice.insert(twice.end(), start.begin(), start.end());
  EXPECT_EQ(net.output(0), twice);
  EXPECT_EQ(net.forward(0), twice);
  net.update();
  std::vector<float> want = start;
  for (std::size_t i = 0; i < want.size(); ++i)
    want[i] += 0.1F / 2 * (net.truth()[i] + net.truth()[want.size() + i] - 2 * start[i]);
  expect_near(net.parameter(0, "weights"), want, 1e-5F);
}

TEST(LowerLocal, StartsEveryPositionAndLearns) {
  Trained net(load("[local]\nfilters=2\nsize=3\npad=1\nactivation=leaky\n[cost]\n"));
  const std::vector<float> start = net.parameter(0, "weights");
  ASSERT_EQ(start.size(), 64U * 2 * 27);
  const float reach = std::sqrt(2.0F / 27);
  for (std::size_t position = 0; position < 64; ++position) {
    const auto own = std::span(start).subspan(position * 54, 54);
    EXPECT_LE(*std::ranges::max_element(own), reach);
    EXPECT_GT(*std::ranges::max_element(own), reach / 2);
  }
  net.run();
  const double before = net.model().losses()[0].cost;
  net.update();
  net.run(2);
  EXPECT_LT(net.model().losses()[0].cost, before);
}

TEST(LowerCrop, IsRandomInTrainingAndCentredOtherwise) {
  Trained net(load("[crop]\ncrop_width=4\ncrop_height=4\nflip=1\n" + kConv + "[cost]\n"));
  const std::vector<float> centre = net.forward(0);
  bool differs = false;
  for (std::int64_t i = 1; i <= 5; ++i) {
    net.run(i);
    differs |= net.output(0) != centre;
  }
  EXPECT_TRUE(differs);
  EXPECT_FLOAT_EQ(centre[0], 2 * net.images()[2 * 8 + 2] - 1);
  EXPECT_NE(refusal(kConv.substr(0, kConv.find("3")) + "2\nsize=1\n[crop]\ncrop_width=2\n"
                                                       "crop_height=2\nsaturation=2\n[cost]\n")
                .find("saturation"),
            std::string::npos);
}

TEST(LowerShareIndex, OneSetOfParametersTakesTheGradientsOfAllItsUsers) {
  const std::string first =
      "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\npad=1\nactivation=leaky\n";
  const std::string second = "[route]\nlayers=-2\n" + first;
  // Both branches see one map; the second one steps by 2 and is weighed down to one cell by the
  // cost.
  const std::string text = kConv + first + second + "share_index=1\n[route]\nlayers=1,3\n[cost]\n";
  Trained net(load(text));
  EXPECT_EQ(net.model().lowered().parameters.size(), 2U + 5U);
  net.run(1, 0);
  const std::vector<float> outputs = net.output(4);
  EXPECT_EQ(net.output(1), net.output(3));
  // The same network with two sets of equal values: its gradients add up to the shared ones.
  Trained apart(load(kConv + first + second + "[route]\nlayers=1,3\n[cost]\n"));
  for (std::size_t i = 0; i < apart.model().lowered().parameters.size(); ++i) {
    const ParameterBinding& b = apart.model().lowered().parameters[i];
    apart.model().set_parameter(i, net.parameter(b.layer == 3 ? 1 : b.layer, b.array));
  }
  for (const int subdivision : {0, 1}) {  // the second mini-batch of an iteration adds to the first
    net.run(1, subdivision);
    apart.run(1, subdivision);
    for (const char* array : {"weights", "scales", "biases"}) {
      std::vector<float> sum = apart.gradient(1, array);
      const std::vector<float> other = apart.gradient(3, array);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
      SCOPED_TRACE(array);
      expect_near(net.gradient(1, array), sum, 2e-4F);
    }
  }
  EXPECT_EQ(outputs, apart.output(4));
  // The rolling statistics move once a use.
  net.update();
  apart.update();
  const float once = apart.parameter(1, "rolling_mean")[0];
  EXPECT_NE(once, 0);
  EXPECT_NE(net.parameter(1, "rolling_mean")[0], once);
}

TEST(LowerFolded, FoldsAnOwnerOnceAndKeepsWhatFollowsAConvolution) {
  const std::string conv = "[convolutional]\nbatch_normalize=1\nfilters=3\nsize=3\npad=1\n";
  const Lowered lowered =
      lower(load(conv + conv + "share_index=0\nantialiasing=1\ncoordconv=1\nstride=2\n"),
            {.training = false, .forward_batch = 1, .fold = true});
  EXPECT_EQ(lowered.folded, std::vector<int>{0});
  EXPECT_EQ(lowered.parameters.size(), 2U);  // biases and weights of the owner
  std::vector<std::string_view> ops;
  for (const graph::Op& op : lowered.graph.ops()) ops.push_back(op.def->name);
  EXPECT_EQ(ops,
            (std::vector<std::string_view>{"conv_forward", "conv_forward", "blur", "coord_conv"}));
}

TEST(LowerShareIndex, RefusesWhatBelongsToTheOwner) {
  const std::string text = kConv + kConv + "share_index=0\n";
  EXPECT_EQ(refusal(text + "[cost]\n"), "");
  EXPECT_NE(refusal(text + "reverse=1\n[cost]\n").find("layer 0"), std::string::npos);
}

TEST(LowerAntialiasing, ConvolvesByOneAndBlursByTheStride) {
  const std::string conv = "[convolutional]\nfilters=4\nsize=3\npad=1\nactivation=leaky\n";
  Trained plain(load(conv + "[cost]\n"));
  for (const int kind : {1, 2}) {
    for (const bool normalised : {false, true}) {
      Trained net(load(conv + (normalised ? "batch_normalize=1\n" : "") +
                       fmt::format("stride=2\nantialiasing={}\n", kind) + "[shortcut]\nfrom=-1\n" +
                       "[maxpool]\nsize=2\nstride=2\n[cost]\n"));
      net.run();
      EXPECT_EQ(net.output(0).size(), kImages * 4U * 16U);
      if (normalised) continue;
      plain.run();
      const std::vector<float> map = plain.output(0);
      const std::vector<float> blurred = net.output(0);
      // Cell (1, 1) of the first plane: around (2, 2) of the map, inside the borders.
      const float weights[3] = {0.25F, 0.5F, 0.25F};
      float want = 0;
      for (std::size_t y = 0; y < 3; ++y) {
        for (std::size_t x = 0; x < 3; ++x) {
          if (kind == 1) want += weights[y] * weights[x] * map[(1 + y) * 8 + 1 + x];
          if (kind == 2 && y < 2 && x < 2) want += 0.25F * map[(2 + y) * 8 + 2 + x];
        }
      }
      EXPECT_NEAR(blurred[5], want, 1e-5);
    }
  }
}

TEST(LowerMaxpool, BlursAndZeroesWhatIsNoMaximum) {
  Trained net(load(kConv + "[maxpool]\nsize=3\nstride=1\nmaxpool_zero_nonmax=1\n[maxpool]\nsize=2\n"
                           "stride=2\nantialiasing=2\n[cost]\n"));
  net.run();
  const std::vector<float> map = net.output(0);
  const std::vector<float> kept = net.output(1);
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < map.size(); ++i) {
    EXPECT_TRUE(kept[i] == map[i] || kept[i] == 0);
    zeros += kept[i] == 0 ? 1U : 0U;
  }
  EXPECT_GT(zeros, map.size() / 2);
  EXPECT_EQ(net.forward(1), kept);
  EXPECT_EQ(net.output(2).size(), kImages * 3U * 16U);
}

TEST(LowerCoordConv, ReplacesChannelsInBothPrograms) {
  Trained net(load("[convolutional]\nfilters=4\nsize=1\ncoordconv=1\n[cost]\n"));
  net.run();
  for (const std::vector<float>& map : {net.output(0), net.forward(0)}) {
    EXPECT_EQ(map[3], 2.0F * 3 / 8 - 1);
    EXPECT_EQ(map[64 + 3 * 8], 2.0F * 3 / 8 - 1);
    EXPECT_FLOAT_EQ(map[128], std::sqrt(2.0F));
  }
}

TEST(LowerExcitation, NeedsTrueBoxes) {
  const std::string text =
      "[convolutional]\nfilters=6\nsize=1\nassisted_excitation=1\n"
      "activation=linear\n";
  EXPECT_NE(refusal(text + "[cost]\n").find("assisted_excitation"), std::string::npos);
  EXPECT_EQ(refusal(text + "[cost]\n", false), "");
  Trained net(load(text + "[yolo]\nclasses=1\nnum=1\nmask=0\nanchors=2,2\nmax=2\n"));
  std::ranges::fill(net.truth(), 0.0F);
  net.run(1);
  const std::vector<float> plain = net.output(0);
  const float box[] = {0.5F, 0.5F, 0.2F, 0.2F, 0, 0};
  std::ranges::copy(box, net.truth().begin());
  net.run(1);
  std::vector<float> want = plain;
  for (const std::size_t cell : {27U, 28U, 35U, 36U}) {
    float mean = 0;
    for (std::size_t c = 0; c < 6; ++c) mean += plain[c * 64 + cell] / 6;
    for (std::size_t c = 0; c < 6; ++c) want[c * 64 + cell] += mean;
  }
  expect_near(net.output(0), want, 1e-5F);
}

TEST(LowerTies, KeepThePartsOfTheFiltersTransformedIntoEachOther) {
  Trained net(
      load("[convolutional]\nfilters=8\nsize=3\npad=1\nrotate=1\nactivation=linear\n"
           "[cost]\n"));
  net.run();
  net.update();
  const std::vector<float> w = net.parameter(0, "weights");
  // Filter 2 is filter 0 by 90 degrees clockwise, filter 4 by 180.
  EXPECT_EQ(w[2 * 27 + 2], w[0]);
  EXPECT_EQ(w[4 * 27 + 8], w[0]);
  net.run(7);
  net.update(7);  // beyond half of the run
  EXPECT_NE(net.parameter(0, "weights")[4 * 27 + 8], net.parameter(0, "weights")[0]);
  EXPECT_NE(refusal("[convolutional]\nfilters=6\nsize=3\nsway=1\n[cost]\n").find("multiple of 4"),
            std::string::npos);
}

TEST(LowerGradCentr, MovesNoFilterAsAWhole) {
  const std::string conv = "[convolutional]\nfilters=4\nsize=3\npad=1\nactivation=leaky\n";
  for (const bool centred : {false, true}) {
    Trained net(
        load(conv + "batch_normalize=1\n" + (centred ? "grad_centr=1\n" : "") + "[cost]\n"));
    const std::vector<float> start = net.parameter(0, "weights");
    net.run();
    net.update();
    const std::vector<float> end = net.parameter(0, "weights");
    float largest = 0;
    for (std::size_t f = 0; f < 4; ++f) {
      float sum = 0;
      for (std::size_t i = f * 27; i < f * 27 + 27; ++i) sum += end[i] - start[i];
      largest = std::max(largest, std::abs(sum));
    }
    EXPECT_EQ(largest < 1e-5F, centred) << largest;
  }
}

TEST(LowerReverse, IsForSgd) {
  const std::string conv = kConv + "reverse=-1\n[cost]\n";
  EXPECT_EQ(refusal(conv), "");
  EXPECT_NE(refusal("adam=1\n" + conv).find("reverse"), std::string::npos);
}

std::filesystem::path tree_file(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("lantern-{}.tree", std::hash<std::string>()(text));
  std::ofstream(path) << text;
  return path;
}

TEST(LowerTree, IsReadForSoftmaxAndRegion) {
  const std::string tree = tree_file("animal -1\nthing -1\n\ncat 0\ndog 0\n").string();
  Trained net(load("[connected]\noutput=4\nactivation=linear\n[softmax]\ntree=" + tree + "\n"));
  net.run();
  const std::vector<float> p = net.output(1);
  for (std::size_t i = 0; i < 8; i += 2) EXPECT_NEAR(p[i] + p[i + 1], 1, 1e-6);
  const std::string region =
      "[convolutional]\nfilters=9\nsize=1\n[region]\nanchors=1,1\nnum=1\n"
      "classes=4\nsoftmax=1\ntree=" +
      tree + "\n";
  EXPECT_EQ(refusal(region), "");
  EXPECT_EQ(refusal(region, false), "");
}

TEST(LowerTree, NamesTheLineThatIsWrong) {
  const auto message = [](const std::string& text) {
    const std::string tree = tree_file(text).string();
    return refusal("[connected]\noutput=3\n[softmax]\ntree=" + tree + "\n");
  };
  EXPECT_NE(message("a -1\nb 0\nc\n").find(".tree:3: 'c'"), std::string::npos);
  EXPECT_NE(message("a -1\nb 1\nc 0\n").find(".tree:2: node 1 has parent 1"), std::string::npos);
  EXPECT_NE(message("a -1\nb 0\n").find("has 2 nodes, the layer 3 classes"), std::string::npos);
}

TEST(LowerMap, RefusesWhatIsNoClass) {
  const auto message = [](const std::string& text) {
    return refusal(
        "[convolutional]\nfilters=7\nsize=1\n[region]\nanchors=1,1\nnum=1\nclasses=2\nmap=" +
        tree_file(text).string() + "\n");
  };
  EXPECT_EQ(message("1\n0\n"), "");
  EXPECT_NE(message("1\ncat\n").find("'cat' is no class index"), std::string::npos);
  EXPECT_NE(message("4294967296\n").find("'4294967296' is no class index"), std::string::npos);
}

const std::string kEmbeddings =
    "[convolutional]\nfilters=8\nsize=1\nactivation=linear\n[route]\nlayers=-2\n"
    "[convolutional]\nfilters=12\nsize=1\nactivation=linear\n"
    "[yolo]\nclasses=1\nnum=2\nanchors=2,2,8,8\nmax=2\nembedding_layer=1\n";

TEST(LowerContrastive, DrawsEqualTracksTogether) {
  Trained net(load(kConv + kEmbeddings + "[route]\nlayers=1\n[contrastive]\nyolo_layer=-2\n"));
  std::ranges::fill(net.truth(), 0.0F);
  // Both images hold tracks 1 and 2, at other places.
  const float rows[] = {0.2F, 0.2F, 0.3F, 0.3F, 0, 1, 0.7F, 0.7F, 0.9F, 0.9F, 0, 2,
                        0.8F, 0.3F, 0.3F, 0.3F, 0, 1, 0.3F, 0.6F, 0.9F, 0.9F, 0, 2};
  std::ranges::copy(rows, net.truth().begin());
  net.run();
  ASSERT_EQ(net.model().losses().size(), 2U);
  EXPECT_GT(net.model().losses()[1].cost, 0);
  EXPECT_EQ(net.output(6), net.output(1));
  // The embeddings take part in nothing else: their weights move by this loss alone.
  const std::vector<float> gradient = net.gradient(1, "weights");
  EXPECT_TRUE(std::ranges::any_of(gradient, [](float g) { return g != 0; }));
  EXPECT_EQ(net.forward(6), net.forward(1));
}

TEST(LowerContrastive, ComparesImagesWithoutAYoloLayer) {
  Trained net(load("[connected]\noutput=6\nactivation=linear\n[contrastive]\nclasses=3\n"));
  EXPECT_EQ(net.model().lowered().truth_floats, 3);
  net.run();
  EXPECT_GE(net.model().losses()[0].cost, 0);
  EXPECT_NE(refusal(kConv + kEmbeddings +
                    "[route]\nlayers=0\n[convolutional]\nfilters=4\nsize=1\n"
                    "[contrastive]\nyolo_layer=4\n")
                .find("8 filters"),
            std::string::npos);
}

TEST(LowerDetection, LearnsItsTruthAndWantsFourCoordinates) {
  const std::string text =
      "[connected]\noutput=54\nactivation=linear\n[detection]\nside=3\nnum=1\n"
      "classes=1\nmax=2\ncoords=";
  Trained net(load(text + "4\n"));
  std::ranges::fill(net.truth(), 0.0F);
  const float box[] = {0.4F, 0.6F, 0.3F, 0.2F, 0, 0};
  std::ranges::copy(box, net.truth().begin());
  net.rate = 0.004F;
  double before = 0;
  for (std::int64_t i = 1; i <= 20; ++i) {
    net.run(i);
    if (i == 1) before = net.model().losses()[0].cost;
    net.update(i);
  }
  EXPECT_LT(net.model().losses()[0].cost, before / 2);
  EXPECT_NE(refusal("[connected]\noutput=36\n[detection]\nside=3\nnum=1\nclasses=1\ncoords=2\n")
                .find("coords=2"),
            std::string::npos);
}

}  // namespace
}  // namespace lantern::layers
