#include "cli/background.hpp"

namespace lantern::cli {
namespace {

TEST(DetectorTrain, PrintsTheLineThatScriptsRead) {
  const WorkFolder folder("39-no-display");
  const Outcome outcome = folder.run("detector train obj.data net.cfg -map");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("\n 1: ")) << outcome.out;
  EXPECT_TRUE(outcome.prints(" avg loss, ")) << outcome.out;
  EXPECT_TRUE(outcome.prints(" hours left")) << outcome.out;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << "no escapes into files";
  EXPECT_TRUE(outcome.says("no display was found"));
  EXPECT_TRUE(folder.has("backup/net_final.weights"));
  EXPECT_TRUE(folder.has("backup/chart_net.png"));
  EXPECT_TRUE(folder.has("backup/net_metrics.jsonl"));
  const Outcome silent = folder.run("detector train obj.data net.cfg -map -dont_show");
  EXPECT_EQ(silent.code, 0);
  EXPECT_FALSE(silent.says("display"));
  EXPECT_EQ(silent.out.substr(0, 30), outcome.out.substr(0, 30)) << "same seed, same first loss";
}

TEST(DetectorTrain, ShowsAugmentedPicturesAsAFile) {
  const WorkFolder folder("39-no-display");
  const Outcome plain = folder.run("detector train obj.data net.cfg -dont_show --threads 1");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_FALSE(folder.has("backup/augmented_net.png"));
  const std::string weights = slurp(folder / "backup/net_final.weights");
  const Outcome all = folder.run("detector train obj.data net.cfg -show_imgs --threads 1");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(all.says("the first 40 training pictures")) << all.err << "10 iterations of 4";
  EXPECT_EQ(slurp(folder / "backup/net_final.weights"), weights) << "looking changes nothing";
  const std::string sheet = slurp(folder / "backup/augmented_net.png");
  EXPECT_EQ(sheet.substr(1, 3), "PNG");
  const Outcome few = folder.run("detector train obj.data net.cfg --show_imgs=2 -dont_show");
  EXPECT_TRUE(few.says("the first 2 training pictures")) << few.err;
  EXPECT_LT(slurp(folder / "backup/augmented_net.png").size(), sheet.size());
  EXPECT_EQ(folder.run("detector train obj.data net.cfg --show_imgs=0").code, 2);
}

TEST(DetectorTrain, TrainsEveryDetectionLayer) {
  const WorkFolder folder("39-no-display");
  const std::string cfg = slurp(folder / "net.cfg");
  std::string gaussian = cfg;  // 9 numbers and 2 classes for each of 3 anchors
  gaussian.replace(gaussian.find("[yolo]"), 6, "[Gaussian_yolo]");
  gaussian.replace(gaussian.find("filters=21"), 10, "filters=33");
  put(folder / "gaussian.cfg", gaussian);
  put(folder / "region.cfg",
      cfg.substr(0, cfg.find("[yolo]")) +
          "[region]\nanchors=1,1, 2,2, 4,4\nclasses=2\nnum=3\nsoftmax=1\njitter=.2\nmax=7\n");
  put(folder / "detection.cfg",  // 2 classes and 2 boxes of 5 numbers in each of 9 cells
      cfg.substr(0, cfg.find("[yolo]")) +
          "[connected]\noutput=108\nactivation=linear\n[detection]\nside=3\nnum=2\nclasses=2\n"
          "coords=4\nsqrt=1\njitter=.2\n");
  for (const char* name : {"gaussian", "region", "detection"}) {
    const std::string net = name;
    const Outcome trained = folder.run("detector train obj.data " + net + ".cfg -map -dont_show");
    ASSERT_EQ(trained.code, 0) << net << trained.err;
    const auto loss = [&](const char* iteration) {
      return std::stod(
          trained.out.substr(trained.out.find(iteration) + std::string(iteration).size()));
    };
    EXPECT_LT(loss("\n 10: "), 0.8 * loss("\n 1: ")) << net << trained.out;
    EXPECT_EQ(
        folder.run("detector map obj.data " + net + ".cfg backup/" + net + "_final.weights").code,
        0);
  }
  put(folder / "none.cfg", cfg.substr(0, cfg.find("[yolo]")) + "[cost]\n");
  const Outcome none = folder.run("detector train obj.data none.cfg -dont_show");
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(none.says("needs a [yolo], [Gaussian_yolo], [region] or [detection]")) << none.err;
}

TEST(DetectorTrain, TrainsARecurrentDetectorOnSinglePicturesAndRefusesSequences) {
  const WorkFolder folder("39-no-display");
  std::string cfg = slurp(folder / "net.cfg");
  const std::size_t last = cfg.rfind("[convolutional]", cfg.find("[yolo]"));
  cfg.insert(last, "[crnn]\nhidden=8\noutput=12\npad=1\nbatch_normalize=1\nactivation=leaky\n\n");
  put(folder / "recurrent.cfg", cfg);
  const Outcome trained = folder.run("detector train obj.data recurrent.cfg -map -dont_show");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(folder.has("backup/recurrent_final.weights"));
  const std::string map = "detector map obj.data recurrent.cfg backup/recurrent_final.weights";
  const Outcome singly = folder.run(map);
  ASSERT_EQ(singly.code, 0) << singly.err;
  EXPECT_EQ(folder.run(map + " -batch 3").out, singly.out);
  for (const char* key : {"time_steps=2", "track=1"}) {
    std::string sequences = cfg;
    sequences.insert(cfg.find("[net]") + 6, std::string(key) + "\n");
    put(folder / "sequences.cfg", sequences);
    const Outcome refused = folder.run("detector train obj.data sequences.cfg -dont_show");
    EXPECT_EQ(refused.code, 3) << refused.err;
    const std::string name = std::string(key).substr(0, std::string(key).find('='));
    EXPECT_TRUE(refused.says("[net] " + name + " is not supported by this verb")) << refused.err;
  }
}

TEST(DetectorTrain, SeedChangesTheRun) {
  const WorkFolder folder("39-no-display");
  const auto first_line = [&](const char* seed) {
    const std::string out =
        folder
            .run("detector train obj.data net.cfg -dont_show --threads 1 --seed " +
                 std::string(seed))
            .out;
    return out.substr(0, out.find("rate"));
  };
  EXPECT_EQ(first_line("3"), first_line("3"));
  EXPECT_NE(first_line("3"), first_line("4"));
}

TEST(DetectorTrain, CfgNamesWithDotsDoNotOverwriteSilently) {
  const WorkFolder folder("11-cfg-name-with-dots");
  ASSERT_EQ(folder.run("detector train obj.data net_v0.4.cfg").code, 0);
  const Outcome second = folder.run("detector train obj.data net_v0.5.cfg");
  ASSERT_EQ(second.code, 0);
  EXPECT_TRUE(second.says("net_v0.4.cfg")) << second.err;
}

TEST(DetectorTrain, FindsFilesWithSpaces) {
  const WorkFolder folder("12-spaces-in-paths");
  const Outcome outcome = folder.run("detector train obj.data net.cfg");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(folder.has("out put/net_final.weights"));
  EXPECT_TRUE(outcome.says("out put/net_final.weights"));
}

TEST(DetectorTrain, ClassCountsAreCompared) {
  const WorkFolder folder("18-classes-differ-in-data-and-cfg");
  const Outcome warned = folder.run("detector train obj.data net.cfg");
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_TRUE(warned.says("classes=3")) << warned.err;
  EXPECT_TRUE(warned.says("obj.names has 2 names")) << warned.err;
  for (const char* verb : {"train", "map", "valid", "test"}) {
    const std::string rest = std::string(verb) == "train" ? "" : " backup/net_final.weights";
    const Outcome refused =
        folder.run("detector " + std::string(verb) + " obj2.data net.cfg" + rest);
    EXPECT_EQ(refused.code, 3) << verb;
    EXPECT_TRUE(refused.says("obj3.names")) << refused.err;
  }
}

TEST(DetectorTrain, ValidationListIsCheckedFirst) {
  const WorkFolder folder("19-valid-list-empty");
  const Outcome empty = folder.run("detector train obj_a.data net.cfg -map");
  EXPECT_EQ(empty.code, 3);
  EXPECT_TRUE(empty.says("valid_a.txt")) << empty.err;
  EXPECT_TRUE(empty.says("has no images")) << empty.err;
  EXPECT_EQ(empty.out, "");
  const Outcome none = folder.run("detector train obj_c.data net.cfg -map");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(none.says("no valid=")) << none.err;
  const Outcome no_boxes = folder.run("detector map obj_b.data net.cfg backup/net_final.weights");
  EXPECT_EQ(no_boxes.code, 0) << no_boxes.err;
  EXPECT_TRUE(no_boxes.prints("0 truth boxes")) << no_boxes.out;
  EXPECT_EQ(no_boxes.out.find("nan"), std::string::npos);
}

TEST(DetectorTrain, BackupFolderIsMade) {
  const WorkFolder folder("26-backup-folder-missing");
  const Outcome outcome = folder.run("detector train obj.data net.cfg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.says("out/weights")) << outcome.err;
  EXPECT_TRUE(folder.has("out/weights/net_final.weights"));
}

TEST(DetectorTrain, BackupFolderThatCannotBeMadeStopsTheRun) {
  const WorkFolder folder("26-backup-folder-missing");
  put(folder / "out", "a file where the folder should be");
  const Outcome outcome = folder.run("detector train obj.data net.cfg");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(outcome.says("out/weights")) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST(DetectorTrain, InterruptSavesWeights) {
  const WorkFolder folder("39-no-display");
  std::string cfg = slurp(folder / "net.cfg");
  const std::size_t key = cfg.find("max_batches=");
  ASSERT_NE(key, std::string::npos);
  cfg.replace(key, cfg.find('\n', key) - key, "max_batches=10000000");
  put(folder / "net.cfg", cfg);
  Background run(folder, {"detector", "train", "obj.data", "net.cfg"});
  run.wait_for("avg loss");
  EXPECT_EQ(run.end_with(SIGINT), 130) << run.output();
  EXPECT_TRUE(folder.has("backup/net_last.weights"));
}

}  // namespace
}  // namespace lantern::cli
