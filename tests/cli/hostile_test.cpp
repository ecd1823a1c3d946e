// What surrounds the program is broken: disks, folders, pipes, closed streams, signals.

#include <sys/stat.h>

#include "cli/background.hpp"

namespace lantern::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kTrain = "detector train obj.data net.cfg -dont_show ";
constexpr const char* kTest = "detector test obj.data net.cfg fix.weights ";

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = slurp(file);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  put(file, text.replace(at, from.size(), to));
}

TEST(Hostile, AChartThatCannotBeWrittenIsKnownBeforeTheRun) {
  const WorkFolder folder("39-no-display");
  for (const char* chart : {"none/x.png", "img"}) {
    const Outcome outcome = folder.run(std::string(kTrain) + "-chart " + chart);
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_TRUE(outcome.says("the chart cannot be written")) << outcome.err;
    EXPECT_FALSE(outcome.prints("avg loss"));
  }
}

// The chart is far larger than the weights of this network.
TEST(Hostile, AFullDiskCostsTheChartBeforeTheWeights) {
  const WorkFolder folder("39-no-display");
  put(folder / "run.sh", "ulimit -f 16\n'" LANTERN_PROGRAM "' " + std::string(kTrain) + "\n");
  const Outcome outcome = folder.run("run.sh", {}, "bash");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.says("chart_net.png: cannot be written")) << outcome.err;
  EXPECT_TRUE(outcome.says("training goes on")) << outcome.err;
  EXPECT_TRUE(folder.has("backup/net_final.weights"));
  for (const fs::directory_entry& file : fs::directory_iterator(folder / "backup")) {
    EXPECT_EQ(file.path().string().find(".tmp"), std::string::npos) << file.path();
  }
}

TEST(Hostile, TheMetricsLogKeepsWholeLines) {
  const WorkFolder folder("39-no-display");
  put(folder / "old.jsonl", "{\"iteration\": 1}\n{\"itera");  // killed while it wrote
  put(folder / "run.sh",
      "ulimit -f 4\n'" LANTERN_PROGRAM "' " + std::string(kTrain) + "-log old.jsonl\n");
  const Outcome outcome = folder.run("run.sh", {}, "bash");
  EXPECT_TRUE(outcome.says("the metrics log cannot be written any more")) << outcome.err;
  const std::string log = slurp(folder / "old.jsonl");
  EXPECT_TRUE(log.ends_with("}\n")) << log;
  const std::string mended = "{\"iteration\": 1}\n{\"itera\n{";
  EXPECT_EQ(log.substr(0, mended.size()), mended) << "a new line begins behind the broken one";
}

TEST(Hostile, AnEvaluationThatFailsCostsNoTraining) {
  const WorkFolder folder("39-no-display");
  put(folder / "valid.txt", "img/none.png\nimg/nothing.png\n");
  const Outcome missing = folder.run(std::string(kTrain) + "-map");
  EXPECT_EQ(missing.code, 3);
  EXPECT_TRUE(missing.says("none of its 2 images is there")) << missing.err;
  EXPECT_FALSE(missing.prints("avg loss")) << "known before the run";
  put(folder / "valid.txt", "obj.names\n");
  const Outcome unreadable = folder.run(std::string(kTrain) + "-map");
  EXPECT_EQ(unreadable.code, 0) << unreadable.err;
  EXPECT_TRUE(unreadable.says("no mAP at iteration")) << unreadable.err;
  EXPECT_TRUE(folder.has("backup/net_final.weights"));
  const std::string first = slurp(folder / "train.txt");
  put(folder / "valid.txt", first.substr(0, first.find('\n')) + "\nobj.names\n");
  const Outcome one = folder.run(std::string(kTrain) + "-map");
  EXPECT_EQ(one.code, 0);
  EXPECT_TRUE(one.says("1 of 2 images cannot be used for mAP; the first: obj.names")) << one.err;
}

TEST(Hostile, PipesAndDevicesAreNoImagesAndNoWeights) {
  const WorkFolder folder("38-batch-inference-every-image");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const Outcome image = folder.run(std::string(kTest) + "pipe");
  EXPECT_EQ(image.code, 3);
  EXPECT_TRUE(image.says("pipe: is a pipe, an image file is needed")) << image.err;
  EXPECT_TRUE(folder.run(std::string(kTest) + "/dev/zero").says("/dev/zero: is a device"));
  EXPECT_TRUE(
      folder.run("detector test obj.data net.cfg pipe img").says("is a pipe, a .weights file"));
}

TEST(Hostile, JsonToAnOpenStreamGoesThere) {
  const WorkFolder folder("38-batch-inference-every-image");
  EXPECT_EQ(folder.run(std::string(kTest) + "img --json=/dev/null").code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const Outcome out = folder.run("plan net.cfg -quiet --json=/dev/stdout");
  EXPECT_EQ(out.code, 0);
  EXPECT_TRUE(out.prints("\"schema\": 1")) << out.out;
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
}

TEST(Hostile, ResultsThatCannotBeWrittenAreKnownBeforeTheWork) {
  const WorkFolder folder("38-batch-inference-every-image");
  for (const char* flag : {"--json=img", "--json=none/x.json", "-out img", "-out none/x.json"}) {
    const Outcome outcome = folder.run(std::string(kTest) + "img " + flag);
    EXPECT_EQ(outcome.code, 4) << flag;
    EXPECT_EQ(outcome.out, "") << flag;
  }
  EXPECT_EQ(folder.run("detector map obj.data net.cfg fix.weights --json=img").code, 4);
  EXPECT_EQ(folder.run("bench net.cfg --json=img").out, "");
  EXPECT_TRUE(folder.run(std::string(kTest) + "img -label_dir l")
                  .says("-label_dir does nothing without -save_labels"));
}

TEST(Hostile, ClosedStreamsLendTheirNumbersToNoFile) {
  const WorkFolder folder("38-batch-inference-every-image");
  put(folder / "run.sh", "'" LANTERN_PROGRAM "' " + std::string(kTest) + "img -out o.json >&-\n");
  const Outcome outcome = folder.run("run.sh", {}, "bash");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(outcome.says("standard output: cannot be written")) << outcome.err;
  EXPECT_FALSE(folder.has("o.json")) << "not finished, not half";
}

TEST(Hostile, LabelsOfTwoImagesDoNotReplaceEachOther) {
  const WorkFolder folder("38-batch-inference-every-image");
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder / name);
    fs::copy(folder / "img/g255.png", folder / (std::string(name) + "/1.png"));
  }
  const Outcome outcome =
      folder.run(std::string(kTest) + "-save_labels -label_dir l", "a/1.png\na/1.png\nb/1.png\n");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(outcome.says("b/1.png: its label file l/1.txt was written for a/1.png"))
      << outcome.err;
}

TEST(Hostile, BinaryNamesBecomeOneReadableLine) {
  const WorkFolder folder("38-batch-inference-every-image");
  const Outcome outcome = folder.run(kTest, std::string("a\0\x1b[31m\n", 8));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(outcome.says("lantern: a??[31m: cannot be opened")) << outcome.err;
  EXPECT_LT(folder.run(kTest, std::string(1000000, 'n')).err.size(), 10000U);
}

// The pictures held ready are far larger than this network.
TEST(Hostile, PicturesThatDoNotFitAreRefusedBeforeTheyAreHeld) {
  const WorkFolder folder("39-no-display");
  replace_in(folder / "net.cfg", "batch=4\nsubdivisions=1", "batch=4194304\nsubdivisions=4194304");
  const Outcome train = folder.run(kTrain);
  EXPECT_EQ(train.code, 4) << train.err;
  EXPECT_TRUE(train.says("the pictures held ready for the network need")) << train.err;
  EXPECT_EQ(train.out, "");
}

TEST(Hostile, SchedulersEndARunAsCtrlCDoes) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const WorkFolder folder("39-no-display");
    replace_in(folder / "net.cfg", "max_batches=10", "max_batches=1000000");
    Background run(folder, {"detector", "train", "obj.data", "net.cfg"});
    run.wait_for("avg loss");
    EXPECT_EQ(run.end_with(signal), 130) << signal << ": " << run.output();
    EXPECT_TRUE(folder.has("backup/net_last.weights"));
  }
}

}  // namespace
}  // namespace lantern::cli
