#include "cli/program.hpp"
#include "cli/verbs.hpp"

namespace lantern::cli {
namespace {

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Usage, WithoutArgumentsHelpIsPrinted) {
  const WorkFolder folder;
  for (const char* args : {"", "--help", "help"}) {
    const Outcome outcome = folder.run(args);
    EXPECT_EQ(outcome.code, 0) << args;
    EXPECT_TRUE(outcome.prints("usage: lantern")) << args;
    EXPECT_EQ(outcome.err, "") << args;
  }
}

TEST(Usage, EveryVerbHasHelpWithFlagsAndAnExample) {
  const WorkFolder folder;
  for (const Verb& verb : verbs()) {
    if (verb.name == "help") continue;
    const Outcome outcome = folder.run(std::string(verb.name) + " --help");
    EXPECT_EQ(outcome.code, 0) << verb.name;
    EXPECT_TRUE(outcome.prints("lantern " + std::string(verb.name))) << verb.name;
    EXPECT_TRUE(outcome.prints("Flags\n")) << verb.name;
    EXPECT_TRUE(outcome.prints("Example\n  lantern ")) << verb.name;
  }
}

TEST(Usage, SectionsOfACfgHaveHelp) {
  const WorkFolder folder;
  EXPECT_TRUE(folder.run("help cfg").prints("maxpool"));
  EXPECT_TRUE(folder.run("help maxpool").prints("stride"));
  EXPECT_TRUE(folder.run("help '[yolo]'").prints("ignore_thresh"));
  const Outcome wrong = folder.run("help maxpol");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(wrong.says("did you mean maxpool?"));
}

TEST(Usage, WrongVerbsAreRefusedInOneLine) {
  const WorkFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"detectr", "unknown verb 'detectr'"},
      {"partail", "did you mean 'partial'?"},
      {"go", "verb 'go' of Darknet is not part of this program"},
      {"classifier try a b", "verb 'classifier try' is not part of this version"},
      {"detector", "usage: lantern detector <train|test|map|valid|recall|calc_anchors>"},
      {"detector trian a b", "want train, test, map, valid, recall"},
      {"detector traim a b", "did you mean 'train'?"},
      {"detector demo a b c", "verb 'detector demo' is not part of this version"},
      {"detector map a b", "too few arguments; usage: lantern detector map <data> <cfg> <weights>"},
      {"detector map a b c d", "too many arguments"},
      {"plan", "too few arguments"},
      {"-qwerty", "no verb"},
  };
  for (const auto& [args, message] : cases) {
    const Outcome outcome = folder.run(args);
    EXPECT_EQ(outcome.code, 2) << args;
    EXPECT_TRUE(outcome.says(message)) << args << ": " << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1U) << outcome.err;
    EXPECT_EQ(outcome.out, "") << args;
  }
}

TEST(Usage, UnknownFlagsStopBeforeAnyWork) {
  const WorkFolder folder("10-unknown-flag");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"detector calc_anchors obj.data -num_clusters 6 -width 64 -height 64", "-num_of_clusters"},
      {"detector train obj.data net.cfg -clean", "-clear"},
      {"detector train -clean obj.data net.cfg", "-clear"},
      {"detector train obj.data net.cfg -dont show", "-dont_show"},
  };
  for (const auto& [args, flag] : cases) {
    const Outcome outcome = folder.run(args);
    EXPECT_EQ(outcome.code, 2) << args;
    EXPECT_TRUE(outcome.says("unknown flag")) << args;
    EXPECT_TRUE(outcome.says("did you mean " + flag)) << args << ": " << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1U) << outcome.err;
  }
  EXPECT_FALSE(folder.has("backup/net_final.weights"));
}

TEST(Usage, WhatThisVersionLacksIsRefusedByName) {
  const WorkFolder folder("10-unknown-flag");
  const std::vector<std::pair<std::string, int>> cases{
      {"detector train obj.data net.cfg -gpus 0,1", 2},
      {"detector train obj.data net.cfg --precision bf16", 2},
      {"bench net.cfg --precision fp16", 2},
      {"detector train obj.data net.cfg -i 0", 4},
      {"plan net.cfg --device cuda:0", 4},
      {"detector train obj.data net.cfg -mjpeg_port 8090", 2},
  };
  for (const auto& [args, code] : cases) {
    const Outcome outcome = folder.run(args);
    EXPECT_EQ(outcome.code, code) << args;
    EXPECT_TRUE(outcome.says("this version") || outcome.says("this build")) << outcome.err;
  }
}

TEST(Usage, CarriageReturnsAndTabsInArgumentsAreDropped) {
  const WorkFolder folder;
  EXPECT_EQ(folder.run("\"$(printf 'version\\r')\"").code, 0);
}

TEST(Usage, VerbMayFollowTheDeviceFlag) {
  const WorkFolder folder("10-unknown-flag");
  EXPECT_EQ(folder.run("-i -1 plan net.cfg").code, 0);
}

TEST(Usage, TheDarknetLinkIsTheSameProgram) {
  const WorkFolder folder;
  const auto link = std::filesystem::path(LANTERN_PROGRAM).parent_path() / "darknet";
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(folder.run("version", "", link.string()).prints("lantern "));
}

TEST(Usage, MissingFilesAreBadInput) {
  const WorkFolder folder("10-unknown-flag");
  for (const char* args : {"plan x.cfg", "ops x.cfg", "detector train x.data net.cfg",
                           "detector map obj.data x.cfg w", "detector map obj.data net.cfg w"}) {
    const Outcome outcome = folder.run(args);
    EXPECT_EQ(outcome.code, 3) << args;
    EXPECT_TRUE(outcome.says("Couldn't open file: ")) << outcome.err;
  }
}

TEST(Usage, UnwritableOutputIsAResourceError) {
  const WorkFolder folder("10-unknown-flag");
  EXPECT_EQ(folder.run("plan net.cfg --json=no/such/folder/x.json").code, 4);
}

}  // namespace
}  // namespace lantern::cli
