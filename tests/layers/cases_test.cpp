// Small networks from public bug reports: what is wrong is said with file, line and remedy.
#include <gtest/gtest.h>

#include "support.hpp"

namespace lantern::layers {
namespace {

using testing::load;

constexpr std::string_view kHead =
    "[net]\nbatch=4\nsubdivisions=1\nwidth=64\nheight=64\nchannels=3\n"                // lines 1-6
    "[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=2 # half\npad=1\n"  // 7-12
    "activation=leaky # not relu\n";                                                   // 13
constexpr std::string_view kYolo =
    "[yolo]\nmask=0,1,2\nanchors=8,8, 16,16, 32,32   # pixels, 3 pairs\nclasses=2\nnum=3\n";
std::string detector(std::string_view middle, int filters = 21) {
  return fmt::format("{}{}[convolutional]\nfilters={} # (2+5)*3\nactivation=linear\n{}", kHead,
                     middle, filters, kYolo);
}

TEST(CfgCases, InlineCommentsChangeNothing) {
  const auto loaded = load(detector(""));
  EXPECT_EQ(loaded.messages(), "");
  const auto& first = std::get<ConvolutionalSpec>(loaded.network.layers[0].spec);
  EXPECT_EQ(first.stride, 2);
  EXPECT_EQ(first.activation, Activation::kLeaky);
  EXPECT_EQ(std::get<ConvolutionalSpec>(loaded.network.layers[1].spec).filters, 21);
  EXPECT_EQ(std::get<YoloSpec>(loaded.network.layers[2].spec).anchors,
            (std::vector<float>{8, 8, 16, 16, 32, 32}));
}

TEST(CfgCases, MissingHeadersAreNamed) {
  EXPECT_EQ(load("classes=1\nfilters=18\n").messages(),
            "net.cfg:1:1: error: 'classes=1' stands before the first section; a section header "
            "such as [net] is "
            "expected first\n");
  EXPECT_EQ(
      load("").messages(),
      "net.cfg:1:1: error: the file has no sections (is it empty?); a cfg starts with [net]\n");
  EXPECT_EQ(
      load("[convolutional]\nfilters=3\n").messages(),
      "net.cfg:1:1: error: the first section is [convolutional], it must be [net] or [network]\n");
  EXPECT_EQ(load("[net]\nwidth=8\nheight=8\nchannels=1\n").messages(),
            "net.cfg:1:1: error: the network has no layers after [net]\n");
}

TEST(CfgCases, FiltersThatDoNotMatchClassesNameBothSections) {
  EXPECT_EQ(load(detector("", 18)).messages(),
            "net.cfg:17:1: error: [yolo] needs (2+4+1)*3 = 21 channels, but the [convolutional] "
            "that feeds it "
            "(net.cfg:15:1) has filters=18; write filters=21 there\n");
  // Through a route with one source the convolution is still found; behind a join it is not.
  const std::string route = fmt::format(
      "{}[convolutional]\nfilters=18\nactivation=linear\n[route]\nlayers=-1\n{}", kHead, kYolo);
  EXPECT_NE(
      load(route).messages().find(
          "net.cfg:19:1: error: [yolo] needs (2+4+1)*3 = 21 channels, but the [convolutional] "
          "that feeds it (net.cfg:15:1) has filters=18"),
      std::string::npos)
      << load(route).messages();
  const std::string join = fmt::format("{}[route]\nlayers=-1,-1\n{}", kHead, kYolo);
  EXPECT_NE(load(join).messages().find(
                "but the [route] before it (net.cfg:14:1) gives 16; put a [convolutional] with "
                "filters=21 size=1 between them"),
            std::string::npos)
      << load(join).messages();
  const auto region = load(fmt::format("{}[region]\nclasses=3\nnum=2\nanchors=1,1,2,2\n", kHead));
  EXPECT_NE(region.messages().find("[region] needs (3+4+1)*2 = 16 channels"), std::string::npos)
      << region.messages();
}

TEST(CfgCases, ASizeThatBreaksAJoinNamesTheSizesThatWork) {
  const std::string text = testing::net(
      100, 100,
      "[convolutional]\nsize=3\nstride=2\npad=1\n[convolutional]\nsize=3\nstride=2\npad=1\n"
      "[convolutional]\nsize=3\nstride=2\npad=1\n[upsample]\n[route]\nlayers=-1,1\n");
  EXPECT_EQ(load(text).messages(),
            "net.cfg:19:1: error: [route] layer 4 joins layer 3 (net.cfg:17:1) of 26x26 and layer "
            "1 (net.cfg:9:1) of 25x25; "
            "they must have equal width and height; width=100 in [net] does not suit, nearest that "
            "do: 96 or 104; "
            "height=100 in [net] does not suit, nearest that do: 96 or 104\n");
  // Without the join the size is as good as any other.
  EXPECT_TRUE(
      load(testing::net(100, 100,
                        "[convolutional]\nsize=3\nstride=2\npad=1\n[maxpool]\nsize=2\nstride=2\n"))
          .ok());
  EXPECT_TRUE(load(text, {.width = 96, .height = 104}).ok());
}

TEST(CfgCases, LayerNumbersOutsideTheNetworkAreRefused) {
  const auto route = [](std::string_view layers) {
    return load(fmt::format("{}[route]\nlayers={}\n", kHead, layers)).messages();
  };
  EXPECT_EQ(route("-9"),
            "net.cfg:15:1: error: [route] layers=-9 in layer 1 means layer -8, which is not an "
            "earlier layer; "
            "want 0..0 or -1..-1\n");
  EXPECT_EQ(route("7"),
            "net.cfg:15:1: error: [route] layers=7 in layer 1 means layer 7, which is not an "
            "earlier layer; want "
            "0..0 or -1..-1\n");
  EXPECT_EQ(route("1").find("net.cfg:15:1: error"), 0U);  // itself
  EXPECT_EQ(route(""), "net.cfg:15:1: error: [route] layers has no value; it must be given\n");
  EXPECT_EQ(load(testing::net(8, 8, "[route]\nlayers=-1\n")).messages(),
            "net.cfg:6:1: error: [route] layers=-1 in layer 0 means layer -1, which is not an "
            "earlier layer; there is no "
            "earlier layer\n");
  for (const char* section : {"shortcut", "sam", "scale_channels"}) {
    SCOPED_TRACE(section);
    EXPECT_EQ(load(fmt::format("{}[{}]\nfrom=-12\nactivation=linear\n", kHead, section)).messages(),
              fmt::format("net.cfg:15:1: error: [{}] from=-12 in layer 1 means layer -11, which is "
                          "not an earlier layer; "
                          "want 0..0 or -1..-1\n",
                          section));
    EXPECT_EQ(
        load(fmt::format("{}[{}]\nactivation=linear\n", kHead, section)).messages(),
        fmt::format("net.cfg:14:1: error: [{}] from is missing; it must be given\n", section));
  }
}

TEST(CfgCases, NegativeStepsAreKept) {
  const auto loaded = load(
      "[net]\nwidth=8\nheight=8\nchannels=3\npolicy=steps\nsteps=-1,3,6\nscales=.1,10,.1\n[avgpool]"
      "\n");
  EXPECT_EQ(loaded.messages(), "");
  EXPECT_EQ(loaded.network.net.steps, (std::vector<int>{-1, 3, 6}));
  EXPECT_EQ(loaded.network.net.scales, (std::vector<float>{.1F, 10, .1F}));
}

TEST(CfgCases, ABatchThatSubdivisionsDoNotDivideIsRefusedWithThePairsThatWork) {
  const std::string text =
      "[net]\nbatch=8\nsubdivisions=3\nwidth=8\nheight=8\nchannels=3\n[avgpool]\n";
  EXPECT_EQ(load(text).messages(),
            "net.cfg:2:1: error: [net] batch=8 is not a multiple of subdivisions=3 (net.cfg:3:1); "
            "nearest batch/subdivisions "
            "that work: 6/3, 9/3, 8/4, 8/2\n");
  const auto inference = load(text, {.batch = 1, .subdivisions = 1});
  EXPECT_TRUE(inference.ok());
  EXPECT_EQ(inference.network.minibatch(), 1);
  EXPECT_EQ(load("[net]\nsubdivisions=0\nwidth=8\nheight=8\nchannels=3\n[avgpool]\n").messages(),
            "net.cfg:2:1: error: [net] subdivisions is 0, want >= 1\n");
}

TEST(CfgCases, CrossIterationBatchNormalisationHasTwoSpellingsAndOneLayout) {
  const auto conv = [](std::string_view keys) {
    return load(testing::net(8, 8, fmt::format("[convolutional]\n{}filters=4\nsize=3\n", keys)))
        .network.layers.at(0);
  };
  const Layer plain = conv("batch_normalize=1\n"), two = conv("batch_normalize=2\n"),
              cbn = conv("cbn=1\n");
  EXPECT_EQ(std::get<ConvolutionalSpec>(plain.spec).batch_normalize, 1);
  EXPECT_EQ(std::get<ConvolutionalSpec>(two.spec).batch_normalize, 2);
  EXPECT_EQ(std::get<ConvolutionalSpec>(cbn.spec).batch_normalize, 2);
  EXPECT_EQ(plain.parameters, 4 * 4 + 4 * 3 * 9);
  EXPECT_EQ(two.parameters, plain.parameters);
  EXPECT_EQ(cbn.parameters, plain.parameters);
}

TEST(CfgCases, TheSharedCasesLoadOrAreRefused) {
  const auto cases = testing::shared_dir() / "cases";
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "the shared reference set is absent";
  const auto messages = [&](const std::string& file) {
    return testing::load_path(cases / file).messages();
  };
  EXPECT_EQ(messages("01-cfg-inline-comment/net.cfg"), "");
  for (const char* file : {"net.cfg", "net2.cfg", "net3.cfg"}) {
    EXPECT_FALSE(testing::load_path(cases / "02-cfg-option-before-section" / file).ok());
  }
  EXPECT_NE(messages("05-filters-do-not-match-classes/net.cfg").find("filters=21"),
            std::string::npos);
  EXPECT_NE(messages("06-size-not-multiple-of-stride/net.cfg").find("96 or 104"),
            std::string::npos);
  EXPECT_EQ(messages("06-size-not-multiple-of-stride/net_ok.cfg"), "");
  for (const char* file : {"net.cfg", "net2.cfg", "net3.cfg", "net4.cfg"}) {
    EXPECT_FALSE(testing::load_path(cases / "07-route-index-outside-network" / file).ok());
  }
  EXPECT_EQ(messages("08-steps-with-minus-one/net.cfg"), "");
  EXPECT_NE(messages("09-batch-not-divisible/net.cfg").find("6/3, 9/3, 8/4, 8/2"),
            std::string::npos);
  EXPECT_EQ(messages("09-batch-not-divisible/net_ok.cfg"), "");
  for (const char* file : {"bn1.cfg", "bn2.cfg", "cbn.cfg", "s4_cbn.cfg"}) {
    EXPECT_EQ(messages(std::string("31-cbn-cfg-options/") + file), "");
  }
}

}  // namespace
}  // namespace lantern::layers
