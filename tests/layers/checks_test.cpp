// One test per kind of refusal or warning of a layer section.
#include <gtest/gtest.h>

#include "support.hpp"

namespace lantern::layers {
namespace {

using testing::load;
using testing::net;

// All messages of a network of a 16x16x8 map (layer 0) followed by `layers` (from line 7 on).
std::string messages(std::string_view layers) {
  return load(net(16, 16, fmt::format("[convolutional]\nfilters=8\n{}", layers))).messages();
}
void expect_message(std::string_view layers, std::string_view part) {
  const std::string all = messages(layers);
  EXPECT_NE(all.find(part), std::string::npos) << "want: " << part << "\nhave: " << all;
}

TEST(LayerChecks, UnknownSectionsKeysAndNames) {
  expect_message(
      "[convolutonal]\n",
      "net.cfg:7:1: error: unknown section [convolutonal]; did you mean [convolutional]?");
  expect_message("[net]\n",
                 "net.cfg:7:1: error: unknown section [net]; only the first section may be [net]");
  expect_message("[Maxpool]\n", "did you mean [maxpool]?");  // case matters
  expect_message("[maxpool]\nsiz=2\n",
                 "net.cfg:8:1: warning: [maxpool] has no key 'siz'; did you mean 'size'?");
  expect_message("[maxpool]\nsize=0\n", "net.cfg:8:1: error: [maxpool] size is 0, want >= 1");
  expect_message("[convolutional]\nactivation=leeky\n",
                 "net.cfg:8:1: error: [convolutional] activation is 'leeky', did you mean "
                 "'leaky'?; want one of linear,");
  expect_message("[cost]\ntype=l1\n", "want one of sse, masked, smooth");
  expect_message("[yolo]\niou_loss=xiou\n", "[yolo] iou_loss is 'xiou'");
}

TEST(LayerChecks, AliasesResolveToTheSectionsName) {
  const auto loaded =
      load(net(16, 16, "[conv]\n[max]\n[local_avg]\n[avg]\n[conn]\n[soft]\n[lrn]\n[silence]\n"));
  EXPECT_EQ(loaded.messages(), "");
  std::string names;
  for (const Layer& layer : loaded.network.layers) names += layer.section + " ";
  EXPECT_EQ(names,
            "convolutional maxpool local_avgpool avgpool connected softmax normalization empty ");
}

TEST(LayerChecks, ConvolutionGeometry) {
  expect_message("[convolutional]\nsize=17\n",
                 "net.cfg:8:1: error: [convolutional] a kernel of 17x17 is larger than the input "
                 "16x16x8 with padding 0");
  expect_message("[convolutional]\nfilters=-3\n", "filters is -3, want >= 1");
  expect_message("[convolutional]\nfilters=4\ngroups=3\n",
                 "groups=3 must divide the 8 input channels and the 4 filters");
  expect_message("[convolutional]\nsize=3\ndilation=2\n",
                 "dilation=2 needs padding 1 with size=3 and an odd size, padding is 0");
  EXPECT_EQ(messages("[convolutional]\nsize=3\ndilation=2\npad=1\n"), "");
  expect_message("[convolutional]\nsize=3\nsway=1\nrotate=1\n",
                 "sway, rotate, stretch and stretch_sway exclude each other");
  expect_message("[convolutional]\nrotate=1\n",
                 "sway, rotate, stretch and stretch_sway need size > 1");
  expect_message("[convolutional]\nfilters=9\nshare_index=0\n",
                 "shares the weights of layer 0 (net.cfg:5:1), which has size=1 "
                 "filters=8 input channels=3");
  expect_message("[maxpool]\n[convolutional]\nshare_index=1\n",
                 "which is a [maxpool]; want a [convolutional]");
}

TEST(LayerChecks, PoolingGeometry) {
  expect_message("[maxpool]\nsize=20\npadding=0\n",
                 "a window of 20x20 is larger than the input 16x16x8 with padding 0");
  expect_message("[maxpool]\nsize=2\npadding=3\n",
                 "padding=3 (both sides together) lets a window of 2 lie outside the map");
  expect_message("[maxpool]\nmaxpool_depth=1\nout_channels=9\n",
                 "out_channels=9 is more than the 8 channels");
  expect_message("[maxpool]\nmaxpool_zero_nonmax=1\nsize=2\nstride=2\n",
                 "needs output and input of one shape");
  expect_message("[local_avgpool]\nsize=20\npadding=0\n", "a window of 20x20 is larger");
}

TEST(LayerChecks, JoinsAndAttention) {
  expect_message("[maxpool]\nstride=2\n[route]\nlayers=0,1\n",
                 "layer 2 joins layer 0 (net.cfg:5:1) of 16x16 and layer 1");
  expect_message("[route]\nlayers=0\ngroups=3\n",
                 "groups=3 does not divide the 8 channels of layer 0");
  expect_message("[route]\nlayers=0\ngroups=2\ngroup_id=2\n",
                 "group_id is 2, want 0..1 with groups=2");
  expect_message("[route]\nlayers=0\ngroups=0\n", "groups is 0, want >= 1");
  expect_message("[convolutional]\nsize=2\n[shortcut]\nfrom=0\n",
                 "layer 2 joins the previous layer of 15x15 and layer 0");
  EXPECT_EQ(messages("[maxpool]\nstride=2\n[shortcut]\nfrom=0\n"),
            "");  // one map is twice the other
  expect_message("[convolutional]\n[shortcut]\nfrom=0\nweights_type=per_feature\n",
                 "weights_type needs weights_normalization=relu or softmax");
  expect_message("[convolutional]\nfilters=4\n[sam]\nfrom=0\n",
                 "the previous layer has 4 channels and layer 0");
  expect_message("[convolutional]\nfilters=4\n[scale_channels]\nfrom=0\n",
                 "wants factors of 1x1x8");
  expect_message("[convolutional]\nfilters=4\n[scale_channels]\nfrom=0\nscale_wh=1\n",
                 "wants one channel of factors");
  EXPECT_EQ(messages("[avgpool]\n[scale_channels]\nfrom=0\n"), "");
}

TEST(LayerChecks, Resampling) {
  expect_message("[upsample]\nstride=0\n", "stride is 0, want another number");
  expect_message("[upsample]\nstride=-17\n", "blocks of 17x17 are larger than the input");
  expect_message("[reorg3d]\nstride=3\n",
                 "stride=3 must divide width and height, the input is 16x16x8");
  expect_message("[reorg]\nstride=4\n", "stride=4 needs channels in multiples of 16");
  expect_message("[reorg3d]\nstride=4\nreverse=1\n", "stride=4 needs channels in multiples of 16");
  expect_message("[crop]\ncrop_width=17\ncrop_height=3\n",
                 "a crop of 17x3 is larger than the input 16x16x8");
}

TEST(LayerChecks, WhatNoMachineHolds) {
  expect_message("[rnn]\nhidden=1048576\n",
                 "net.cfg:7:1: error: [rnn] needs 1099511627776 values in its "
                 "array self.weights, more than any machine holds");
  expect_message("[connected]\noutput=1048576\n[connected]\noutput=1048576\n",
                 "array weights, more than");
  const std::string huge =
      "[net]\nwidth=65536\nheight=65536\nchannels=65536\n[connected]\noutput=1048576\n";
  EXPECT_EQ(load(huge).messages(),
            "net.cfg:1:1: error: [net] an input of 65536x65536x65536 is larger than "
            "any machine holds\n");
}

TEST(LayerChecks, OtherLayers) {
  expect_message("[softmax]\ngroups=3\n", "groups=3 does not divide the 2048 inputs");
  expect_message("[dropout]\nprobability=1.5\n", "probability is 1.5, want <= 1");
  expect_message("[local]\nsize=5\npad=1\n", "pad=1 works with size=3 only");
  expect_message("[local]\nsize=17\n", "a kernel of 17x17 is larger");
  expect_message("[crnn]\nsize=3\n", "the state must keep its size");
  expect_message("[conv_lstm]\noutput=4\npad=1\nbottleneck=1\n",
                 "as many input channels as output=4, there are 8");
  expect_message("[detection]\nside=2\nclasses=3\nnum=1\ncoords=4\n",
                 "= 32 inputs, the previous layer gives 2048");
  expect_message("[upsample]\nstride=1024\n[upsample]\nstride=1024\n",
                 "is larger than any machine holds");
}

TEST(LayerChecks, YoloHeads) {
  const std::string_view head =
      "[convolutional]\nfilters=14\nactivation=linear\n[yolo]\nclasses=2\nnum=2\n";
  const auto yolo = [&](std::string_view keys) {
    return messages(fmt::format("{}{}", head, keys));
  };
  EXPECT_EQ(yolo("anchors=1,2,3,4\n"), "");  // without mask: all anchors
  EXPECT_NE(yolo("anchors=1,0,3,4\n").find("[yolo] anchors: item 2 is 0, want sizes > 0"),
            std::string::npos);
  EXPECT_NE(yolo("anchors=1,2,-3,4\n").find("[yolo] anchors: item 3 is -3"), std::string::npos);
  EXPECT_NE(yolo("mask=0,2\nanchors=1,2,3,4\n").find("[yolo] mask has 2, want 0..1 with num=2"),
            std::string::npos);
  EXPECT_NE(yolo("mask=0,1\nanchors=1,2,3\n")
                .find("anchors has 3 values, num=2 makes 4; missing ones are 0.5"),
            std::string::npos);
  EXPECT_NE(yolo("mask=0,1\nanchors=1,2,3,4,5\n").find("the rest is ignored"), std::string::npos);
  EXPECT_NE(yolo("mask=0,2\nanchors=1,2,3,4,5,6\n").find("num=3 is used"), std::string::npos);
  EXPECT_NE(yolo("anchors=1,2,3,4\ncounters_per_class=5\n")
                .find("counters_per_class has 1 values, classes is 2"),
            std::string::npos);
  EXPECT_NE(yolo("anchors=1,2,3,4\nnew_coords=1\n")
                .find("warning: [yolo] new_coords=1 wants activation=logistic"),
            std::string::npos);
  EXPECT_NE(yolo("anchors=1,2,3,4\nembedding_layer=9\n")
                .find("embedding_layer=9 in layer 2 means layer 9"),
            std::string::npos);
  expect_message("[contrastive]\nyolo_layer=-1\n", "");
  expect_message("[maxpool]\n[contrastive]\nyolo_layer=-1\n",
                 "which is a [maxpool]; want a [yolo]");
  EXPECT_EQ(messages("[contrastive]\n"), "");  // a classifier's: no yolo_layer
}

TEST(LayerChecks, ReportsEverythingAtOnce) {
  const std::string all = messages(
      "[maxpool]\nsize=0\nstrid=2\n[route]\nlayers=-9\n[nosuch]\n[convolutional]\nactivation=x\n");
  for (const char* part : {"size is 0", "'strid'", "layers=-9", "[nosuch]", "activation is 'x'"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
}

TEST(LayerChecks, AnErrorInAKeyLeadsToNoFollowUps) {
  // The default of filters would not suit the head.
  EXPECT_EQ(messages("[convolutional]\nfilters=0\n[yolo]\nanchors=1,2\n"),
            "net.cfg:8:1: error: [convolutional] filters is 0, want >= 1\n");
}

}  // namespace
}  // namespace lantern::layers
