#include <gtest/gtest.h>

#include "support.hpp"

namespace lantern::layers {
namespace {

// "biases 4, weights 8" of the last layer behind a 6x6x3 input.
std::string arrays(std::string_view layers) {
  const auto loaded = testing::load(testing::net(6, 6, layers));
  EXPECT_TRUE(loaded.ok()) << loaded.messages();
  std::string out;
  std::int64_t sum = 0;
  for (const ParameterArray& array : parameter_arrays(loaded.network.layers.back())) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", array.name, array.count);
    sum += array.count;
  }
  EXPECT_EQ(loaded.network.layers.back().parameters, sum);
  return out;
}

TEST(ParameterArrays, ConvolutionHasItsWeightsLast) {
  EXPECT_EQ(arrays("[convolutional]\nfilters=4\nsize=3\n"), "biases 4, weights 108");
  EXPECT_EQ(arrays("[convolutional]\nfilters=6\nsize=3\ngroups=3\nbatch_normalize=1\n"),
            "biases 6, scales 6, rolling_mean 6, rolling_variance 6, weights 54");
  EXPECT_EQ(arrays("[convolutional]\nfilters=3\n[convolutional]\nfilters=3\nshare_index=0\n"), "");
}

TEST(ParameterArrays, ConnectedHasItsWeightsBeforeTheStatistics) {
  EXPECT_EQ(arrays("[connected]\noutput=2\nbatch_normalize=1\n"),
            "biases 2, weights 216, scales 2, rolling_mean 2, rolling_variance 2");
}

TEST(ParameterArrays, OtherLayers) {
  EXPECT_EQ(arrays("[batchnorm]\n"), "biases 3, scales 3, rolling_mean 3, rolling_variance 3");
  EXPECT_EQ(arrays("[local]\nfilters=2\nsize=3\npad=1\n"), "biases 72, weights 1944");
  EXPECT_EQ(arrays("[local]\nfilters=2\nsize=3\n"), "biases 32, weights 864");
  EXPECT_EQ(arrays("[implicit]\nfilters=5\natoms=2\n"), "weights 10");
  EXPECT_EQ(arrays("[maxpool]\nsize=2\n"), "");
  const std::string shortcut =
      "[convolutional]\nfilters=4\n[convolutional]\nfilters=4\n[convolutional]\nfilters=4\n["
      "shortcut]\nfrom=0,1\n"
      "weights_normalization=relu\nweights_type=";
  EXPECT_EQ(arrays(shortcut + "per_feature\n"), "weights 3");
  EXPECT_EQ(arrays(shortcut + "per_layer\n"), "weights 3");
  EXPECT_EQ(arrays(shortcut + "per_channel\n"), "weights 12");
}

TEST(ParameterArrays, RecurrentLayersNameTheirSubLayers) {
  EXPECT_EQ(arrays("[rnn]\nhidden=2\noutput=4\n"),
            "input.biases 2, input.weights 216, self.biases 2, self.weights 4, output.biases 4, "
            "output.weights 8");
  EXPECT_EQ(arrays("[gru]\noutput=2\n"),
            "input_z.biases 2, input_z.weights 216, input_r.biases 2, input_r.weights 216, "
            "input_h.biases 2, input_h.weights "
            "216, state_z.biases 2, state_z.weights 4, state_r.biases 2, state_r.weights 4, "
            "state_h.biases 2, "
            "state_h.weights 4");
  EXPECT_EQ(arrays("[lstm]\noutput=1\n"),
            "wf.biases 1, wf.weights 1, wi.biases 1, wi.weights 1, wg.biases 1, wg.weights 1, "
            "wo.biases 1, wo.weights 1, "
            "uf.biases 1, uf.weights 108, ui.biases 1, ui.weights 108, ug.biases 1, ug.weights "
            "108, uo.biases 1, "
            "uo.weights 108");
  EXPECT_EQ(arrays("[crnn]\nhidden=2\noutput=4\npad=1\nbatch_normalize=1\n"),
            "input.biases 2, input.scales 2, input.rolling_mean 2, input.rolling_variance 2, "
            "input.weights 54, self.biases 2, "
            "self.scales 2, self.rolling_mean 2, self.rolling_variance 2, self.weights 36, "
            "output.biases 4, output.scales 4, "
            "output.rolling_mean 4, output.rolling_variance 4, output.weights 72");
  EXPECT_EQ(arrays("[conv_lstm]\noutput=3\npad=1\npeephole=1\nbottleneck=1\n"),
            "vf.biases 3, vf.weights 81, vi.biases 3, vi.weights 81, vo.biases 3, vo.weights 81, "
            "wf.biases 3, wf.weights 162, "
            "uf.biases 3, uf.weights 81, ui.biases 3, ui.weights 81, ug.biases 3, ug.weights 81, "
            "uo.biases 3, uo.weights 81");
}

}  // namespace
}  // namespace lantern::layers
