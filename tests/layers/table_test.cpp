#include <gtest/gtest.h>

#include "support.hpp"

namespace lantern::layers {
namespace {

void expect_rows(const std::string& table, std::initializer_list<std::string_view> rows) {
  for (const std::string_view row : rows)
    EXPECT_NE(table.find(row), std::string::npos) << "want: " << row << "\n" << table;
}

// Rows as the reference prints them for these layers.
TEST(LayerTable, HasDarknetsRows) {
  const auto loaded = testing::load(testing::net(
      608, 608,
      "[convolutional]\nfilters=32\nsize=3\npad=1\nactivation=leaky\n"
      "[convolutional]\nfilters=64\nsize=3\npad=1\nstride=2\n"
      "[convolutional]\nfilters=64\n[shortcut]\nfrom=1\n[maxpool]\nsize=2\nstride=2\n"
      "[route]\nlayers=4\ngroups=2\ngroup_id=1\n[upsample]\n[dropout]\nprobability=.5\n"
      "[avgpool]\n[connected]\noutput=1000\n[softmax]\n[cost]\n"));
  ASSERT_TRUE(loaded.ok()) << loaded.messages();
  expect_rows(layer_table(loaded.network),
              {"   layer   filters  size/strd(dil)      input                output\n",
               "   0 conv     32       3 x 3/ 1    608 x 608 x   3 ->  608 x 608 x  32 0.639 BF\n",
               "   3 Shortcut Layer: 1,  wt = 0, wn = 0, outputs: 304 x 304 x  64 0.006 BF\n",
               "   4 max                2x 2/ 2    304 x 304 x  64 ->  152 x 152 x  64 0.006 BF\n",
               "1/2 ->  152 x 152 x  32\n",
               "   6 upsample                 2x   152 x 152 x  32 ->  304 x 304 x  32\n",
               "   7 dropout    p = 0.500        2957312  ->   2957312\n",
               "   8 avg                           304 x 304 x  32 ->     32\n",
               "   9 connected                              32  ->  1000\n",
               "  10 softmax                                        1000\n",
               "  11 cost                                           1000\n", "Total BFLOPS "});
}

TEST(LayerTable, MarksGroupsDilationStridesAndKinds) {
  const auto loaded =
      testing::load(testing::net(32, 32,
                                 "[convolutional]\nfilters=8\nsize=3\npad=1\ndilation=2\n["
                                 "convolutional]\nfilters=8\ngroups=4\nsize=3\nstride_x=2\npad=1\n"
                                 "[convolutional]\nfilters=8\nxnor=1\nbin_output=1\n[convolutional]"
                                 "\nfilters=8\nsize=3\npad=1\nantialiasing=1\nstride=2\n"));
  ASSERT_TRUE(loaded.ok()) << loaded.messages();
  expect_rows(
      layer_table(loaded.network),
      {"   0 conv      8       3 x 3/ 1(2)  32 x  32 x   3 ->   32 x  32 x   8 0.000 BF\n",
       "   1 conv      8/   4  3x 3/ 2x 1   32 x  32 x   8 ->   16 x  32 x   8 0.000 BF\n",
       "   2 convXB    8       1 x 1/ 1     16 x  32 x   8 ->   16 x  32 x   8 0.000 BF\n",
       "   3 conv      8       3 x 3/ 1     16 x  32 x   8 ->   16 x  32 x   8 0.001 BF\n", "AA:"});
  EXPECT_EQ(loaded.network.layers[3].out, (Dims{8, 16, 8}));
}

TEST(LayerTable, EndsWithTotals) {
  const Network network = testing::load_path(testing::data_dir() / "yolov4.cfg").network;
  const std::string table = layer_table(network);
  expect_rows(table, {" 161 yolo\n[yolo] params: iou loss: ciou (4), iou_norm: 0.07, obj_norm: "
                      "1.00, cls_norm: 1.00, "
                      "delta_norm: 1.00, scale_x_y: 1.05\n",
                      " 118 upsample                 2x    19 x  19 x 256 ->   38 x  38 x 256\n"});
  EXPECT_TRUE(table.ends_with("Total BFLOPS 128.459 \navg_outputs = 1068395 \n"))
      << table.substr(table.size() - 60);
}

TEST(LayerTable, ShowsTheReceptiveFieldOnRequest) {
  const auto loaded = testing::load(
      "[net]\nwidth=32\nheight=32\nchannels=3\nshow_receptive_field=1\n[convolutional]\nsize=3\n"
      "[maxpool]\nsize=2\nstride=2\n[convolutional]\nsize=3\n");
  // 3; 3 + 1 = 4, step 2; 4 + 2 * 2 = 8
  expect_rows(layer_table(loaded.network),
              {"   0 - receptive field: 3 x 3\n", "   1 - receptive field: 4 x 4\n",
               "   2 - receptive field: 8 x 8\n"});
}

TEST(LayerTable, HasARowForEveryKindOfLayer) {
  for (const cfg::SectionInfo& section : section_reference()) {
    if (section.name == "net") continue;
    std::string keys;
    for (const cfg::KeyInfo& key : section.keys) {
      if (key.required) keys += fmt::format("{}=0\n", key.name);
    }
    if (section.name == "crnn" || section.name == "conv_lstm") keys += "pad=1\n";
    const std::string before = section.name == "scale_channels" ? "[avgpool]\n" : "";
    const int filters = section.name == "yolo"            ? 25
                        : section.name == "Gaussian_yolo" ? 29
                        : section.name == "region"        ? 25
                                                          : 8;
    const std::string layer = section.name == "detection"
                                  ? "[connected]\noutput=147\n[detection]\n"
                                  : fmt::format("{}[{}]\n{}", before, section.name, keys);
    const auto loaded = testing::load(testing::net(
        8, 8, fmt::format("[convolutional]\nfilters={}\nactivation=linear\n{}", filters, layer)));
    ASSERT_TRUE(loaded.ok()) << section.name << "\n" << loaded.messages();
    const std::string table = layer_table(loaded.network);
    EXPECT_NE(table.find(fmt::format("\n{:4} ", loaded.network.layers.size() - 1)),
              std::string::npos)
        << table;
    EXPECT_GT(loaded.network.layers.back().out.elements(), 0) << section.name;
  }
}

}  // namespace
}  // namespace lantern::layers
