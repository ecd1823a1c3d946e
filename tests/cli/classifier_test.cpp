// classifier train, run through the program.
#include <regex>

#include "cli/classifier_folder.hpp"

namespace lantern::cli {
namespace {

namespace fs = std::filesystem;

TEST_F(Classifier, LearnsAHandfulOfPictures) {
  const Outcome trained = train("-topk");
  ASSERT_EQ(trained.code, 0) << trained.err;
  // reference/training.md 13.3: batch, epochs: loss, average, rate, seconds, images, hours.
  const std::regex line(
      R"((^|\n)120, 120\.000: [0-9.]+, [0-9.]+ avg, 0\.050000 rate, [0-9.]+ seconds, 1440 images, )"
      R"(0\.000000 hours left\n)");
  EXPECT_TRUE(std::regex_search(trained.out, line)) << trained.out;
  for (const char* name : {"net_final", "net_best", "net_last"})
    EXPECT_TRUE(folder.has(fmt::format("backup/{}.weights", name))) << name;
  for (const char* name : {"net_final", "net_best"}) {
    const Outcome valid = folder.run(fmt::format(
        "classifier valid cls.data net.cfg backup/{}.weights --json=v.json -quiet", name));
    ASSERT_EQ(valid.code, 0) << valid.err;
    const auto json = parse_json(slurp(folder / "v.json"));
    EXPECT_EQ(json["top1"], 1.0) << name << json.dump();
    EXPECT_EQ(json["images"], 12);
    EXPECT_TRUE(valid.prints("11: top 1: 1.000000, top 2: 1.000000\n")) << valid.out;
  }
}

TEST_F(Classifier, PicturesOfSeveralClassesAreNamedAndUsed) {
  // Every picture of lines lies in a folder `plain`.
  fs::create_directories(folder / "train/plain");
  std::string list;
  for (int i = 0; i < 12; ++i) {
    const std::string name = fmt::format("train/{}_{}.png", i, kLabels[i % 3]);
    const std::string moved = fmt::format("train/plain/{}_lines.png", i);
    if (i % 3 == 0) fs::rename(folder / name, folder / moved);
    list += (i % 3 == 0 ? moved : name) + "\n";
  }
  put(folder / "train.list", list);
  const Outcome trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(trained.says("4 images are of several classes")) << trained.err;
  EXPECT_TRUE(trained.says("train/plain/0_lines.png: 'lines' and 'plain'")) << trained.err;
  // Of several, the first in the order of labels is the right answer.
  const Outcome valid =
      folder.run("classifier valid cls.data net.cfg backup/net_final.weights --json=v.json -quiet");
  ASSERT_EQ(valid.code, 0) << valid.err;
  const Outcome strict = train("-strict");
  EXPECT_EQ(strict.code, 3);
  EXPECT_TRUE(strict.says("4 of 12 images are of several classes")) << strict.err;
}

TEST_F(Classifier, WithoutAnEndTrainsUntilItIsInterrupted) {
  write_cfg("net.cfg", 0);
  Background run(folder, {"classifier", "train", "cls.data", "net.cfg", "-dont_show", "-topk"});
  run.wait_for("\n130, ");
  EXPECT_EQ(run.end_with(SIGINT), 130) << run.output();
  const std::string out = run.output();
  EXPECT_NE(out.find("trains until it is interrupted"), std::string::npos) << out;
  EXPECT_NE(out.find(" inf hours left"), std::string::npos) << out;
  EXPECT_NE(out.find("Last accuracy top1"), std::string::npos) << out;
  EXPECT_TRUE(folder.has("backup/net_last.weights"));
}

TEST_F(Classifier, TopKGoesIntoTheChartAndTheLog) {
  ASSERT_EQ(train("--seed 5").code, 0);
  const std::string plain = slurp(folder / "backup/chart_net.svg");
  ASSERT_EQ(train("--seed 5").code, 0);
  EXPECT_TRUE(slurp(folder / "backup/chart_net.svg") == plain) << "of nothing but the numbers";
  EXPECT_FALSE(folder.has("backup/net_best.weights"));
  const std::string expected = weights();
  std::string log = slurp(folder / "backup/net_metrics.jsonl");
  EXPECT_EQ(log.find("top1"), std::string::npos);
  const Outcome outcome = train("--seed 5 -topk");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(weights() == expected) << "looking changes nothing";
  // An epoch is one iteration, so that it is due at 100, then every second one.
  std::istringstream lines(slurp(folder / "backup/net_metrics.jsonl").substr(log.size()));
  std::vector<int> at;
  for (std::string text; std::getline(lines, text);) {
    const auto json = parse_json(text);
    if (!json.contains("top1")) continue;
    at.push_back(json["iteration"]);
    EXPECT_GE(json["top2"], json["top1"]);
  }
  EXPECT_EQ(at, (std::vector<int>{100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120}));
  EXPECT_GT(slurp(folder / "backup/chart_net.svg").size(), plain.size() + 200);
  EXPECT_TRUE(outcome.prints("Last accuracy top1 = ")) << outcome.out;
}

TEST_F(Classifier, LoaderThreadsChangeNoBit) {
  const std::string keys =
      "cutmix=1\nmosaic=1\nangle=9\naspect=1.2\nhue=.1\nsaturation=1.3\nexposure=1.3\nblur=3\n"
      "label_smooth_eps=.1\n";
  write_cfg("mix.cfg", 12, keys);
  ASSERT_EQ(train("--loader-threads 1", "mix.cfg").code, 0);
  const std::string expected = weights("mix");
  for (const char* threads : {"2", "4"}) {
    ASSERT_EQ(train(fmt::format("--loader-threads {}", threads), "mix.cfg").code, 0);
    EXPECT_TRUE(weights("mix") == expected) << threads;
  }
  write_cfg("mix.cfg", 12);
  ASSERT_EQ(train({}, "mix.cfg").code, 0);
  EXPECT_FALSE(weights("mix") == expected) << "the keys do something";
}

TEST_F(Classifier, ABudgetChangesNoBit) {
  write_cfg("big.cfg", 3);
  std::string text = slurp(folder / "big.cfg");
  for (const auto& [from, to] : {std::pair{"width=24", "width=128"},
                                 {"height=20", "height=96"},
                                 {"filters=8", "filters=48"},
                                 {"filters=16", "filters=48"},
                                 {"stride=2", "stride=1"},
                                 {"stride=2", "stride=1"}}) {
    text.replace(text.find(from), std::string(from).size(), to);
  }
  put(folder / "big.cfg", text);
  const Outcome free = train({}, "big.cfg");
  ASSERT_EQ(free.code, 0) << free.err;
  const std::string expected = weights("big");
  const Outcome refused = train("--memory 30M -topk", "big.cfg");
  ASSERT_EQ(refused.code, 4) << refused.err;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(refused.err, match,
                                std::regex("smallest budget that works is memory=([0-9]+)M")))
      << refused.err;
  // Kernels and what measuring leaves differ between starts.
  const int budget = std::stoi(match[1]) + 16;
  const Outcome tight = train(fmt::format("--memory {}M -topk", budget), "big.cfg");
  ASSERT_EQ(tight.code, 0) << tight.err;
  EXPECT_TRUE(tight.says("% slower than with unlimited memory")) << tight.err;
  EXPECT_TRUE(weights("big") == expected) << "the budget changed the weights";
}

TEST_F(Classifier, GoesOnWhereItWas) {
  ASSERT_EQ(train().code, 0);
  const Outcome ended = train("backup/net_final.weights");
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(ended.says("-clear")) << ended.err;
  const Outcome again = train("backup/net_last.weights");  // of iteration 100
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(again.prints("101, 101.000: ")) << again.out;
  EXPECT_FALSE(again.prints("100, 100.000: "));
}

TEST_F(Classifier, OneChannelNetsReadGrey) {
  write_cfg("grey.cfg");
  std::string text = slurp(folder / "grey.cfg");
  text.replace(text.find("channels=3"), 10, "channels=1");
  put(folder / "grey.cfg", text);
  ASSERT_EQ(train({}, "grey.cfg").code, 0);
  const Outcome valid =
      folder.run("classifier valid cls.data grey.cfg backup/grey_final.weights --json -quiet");
  EXPECT_GE(parse_json(valid.out)["top1"], 0.9);
}

TEST_F(Classifier, ShowsPicturesWithTheirClasses) {
  write_cfg("net.cfg", 2, "cutmix=1\n");
  const Outcome outcome = train("-show_imgs");
  EXPECT_TRUE(outcome.says("the first 24 training pictures")) << outcome.err;
  EXPECT_EQ(slurp(folder / "backup/augmented_net.png").substr(1, 3), "PNG");
}

TEST_F(Classifier, WhatDoesNotFitIsRefusedBeforeAnyWork) {
  struct Case {
    const char* file;
    std::string text;
    std::vector<const char*> says;
  };
  const std::string data = slurp(folder / "cls.data");
  const std::string cfg = slurp(folder / "net.cfg");
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<Case> cases{
      {"cls.data", with(data, "classes=3", "classes=4"), {"net.cfg:39", "3 numbers", "classes=4"}},
      {"cls.data", with(data, "classes=3\n", ""), {"classes=2 (the default)"}},
      {"labels.list", "lines\nbars\n", {"labels.list", "2 labels", "classes=3"}},
      {"labels.list", "lines\nbars\nbars\n", {"labels.list:3", "line 2"}},
      {"labels.list", "a1\nb1\nc1\n", {"none of its 12 images has a class"}},
      {"train.list", "train/0_lines.png\nx.png\n", {"train.list:2", "1 of 2 images have no class"}},
      {"cls.data", with(data, "labels.list", "none.list"), {"none.list"}},
      {"net.cfg", with(cfg, "[softmax]", "[avgpool]"), {"needs a [softmax] or [cost]"}},
      {"net.cfg", with(cfg, "burn_in=10", "loss_scale=8"), {"loss_scale"}},
      {"valid.list", "valid/none_bars.png\n", {"none of its 1 images is there"}},
      {"net.cfg",
       with(cfg, "[avgpool]", "[softmax]\n[avgpool]"),
       {"[softmax] has 480 inputs", "3 classes", "noloss=1"}},
      {"net.cfg", cfg + "tree=nodes.tree\n", {"net.cfg:39", "[softmax] tree is not supported"}},
      {"net.cfg",
       with(cfg, "[softmax]", "[detection]\nside=1"),
       {"[detection] makes this network a detector"}},
      {"cls.data", with(data, "classes=3", "classes=4294967299"), {"classes=4294967299"}},
  };
  for (const Case& one : cases) {
    const std::string before = slurp(folder / one.file);
    put(folder / one.file, one.text);
    const Outcome outcome = train("-topk");
    EXPECT_EQ(outcome.code, 3) << one.text << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const char* text : one.says)
      EXPECT_TRUE(outcome.says(text)) << text << "\n" << outcome.err;
    put(folder / one.file, before);
  }
  EXPECT_EQ(train("-map").code, 2) << "a flag of detectors";
  const Outcome demo = folder.run("classifier demo cls.data net.cfg w");
  EXPECT_EQ(demo.code, 2);
  EXPECT_TRUE(demo.says("'classifier demo' is not part of this version")) << demo.err;
}

TEST_F(Classifier, KeysOfDetectorsAreNamed) {
  write_cfg("net.cfg", 2, "letter_box=1\ngaussian_noise=5\n");
  const Outcome outcome = train();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.says("letter_box is not used by classifiers")) << outcome.err;
  EXPECT_TRUE(outcome.says("gaussian_noise is not used by classifiers"));
}

TEST(ClassifierCases, LabelIsPartOfThePath) {
  const WorkFolder folder("20-classifier-label-is-part-of-path");
  for (const char* data : {"cls", "cls2"}) {
    const Outcome trained = folder.run(fmt::format("classifier train {}.data net.cfg", data));
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_TRUE(trained.says("2 images of 2 classes")) << trained.err;
    EXPECT_FALSE(trained.says("warning")) << trained.err;
    EXPECT_FALSE(trained.says("left out")) << trained.err;
    const Outcome valid = folder.run(
        fmt::format("classifier valid {}.data net.cfg backup/net_final.weights --json", data));
    const auto predictions = parse_json(valid.out)["predictions"];
    const bool first = std::string(data) == "cls";
    EXPECT_EQ(predictions[0]["truth"], first ? 1 : 0) << "dog; person";
    EXPECT_EQ(predictions[1]["truth"], first ? 0 : 1) << "cat; noperson";
  }
}

TEST(ClassifierCases, TheLossIsTheCrossEntropyBesideACost) {
  const WorkFolder folder("20-classifier-label-is-part-of-path");
  ASSERT_EQ(folder.run("classifier train cls.data net.cfg").code, 0);
  std::istringstream lines(slurp(folder / "backup/net_metrics.jsonl"));
  int seen = 0;
  for (std::string text; std::getline(lines, text); ++seen) {
    const auto json = parse_json(text);
    ASSERT_EQ(json["heads"].size(), 2U) << "[softmax] and [cost]";
    EXPECT_NEAR(json["loss"].get<double>(), json["heads"][0]["cost"].get<double>() / 4, 1e-9);
  }
  EXPECT_EQ(seen, 10);
}

}  // namespace
}  // namespace lantern::cli
