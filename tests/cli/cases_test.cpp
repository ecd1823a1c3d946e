// What the case.md of tests/data/cases ask for, run through the program. Cases with more to them
// have tests of their own in the other files.
#include "cli/program.hpp"
#include "data/image.hpp"

namespace lantern::cli {
namespace {

constexpr const char* kTrain = "detector train obj.data ";

// The net.cfg of a case with another line in [net].
void write_cfg_with(const WorkFolder& folder, const std::string& line, const char* name) {
  std::string cfg = slurp(folder / "net.cfg");
  put(folder / name, cfg.insert(cfg.find('\n') + 1, line + "\n"));
}

void write_rgb(const WorkFolder& folder, const char* from, const char* to) {
  const auto png = data::encode_png(data::load_image(folder / from));
  put(folder / to, {reinterpret_cast<const char*>(png.data()), png.size()});
}

std::string losses(const std::string& out) {  // the lines without their times
  std::string text;
  for (std::size_t at = 0; (at = out.find(" rate,", at)) != std::string::npos; ++at) {
    const std::size_t start = out.rfind('\n', at) + 1;
    text += out.substr(start, at - start) + "\n";
  }
  return text;
}

TEST(Cases, RemarksAreNoPartOfAValue) {
  const WorkFolder folder("01-cfg-inline-comment");
  const Outcome shown = folder.run("dump net.cfg --stage cfg");
  EXPECT_TRUE(shown.prints("filters=21\n")) << shown.out;
  EXPECT_TRUE(shown.prints("activation=leaky\n")) << shown.out;
  EXPECT_TRUE(shown.prints("anchors=8,8, 16,16, 32,32\n")) << shown.out;
  EXPECT_EQ(folder.run(kTrain + std::string("net.cfg")).code, 0);
}

struct Refused {
  const char* folder;
  const char* cfg;
  std::vector<const char*> says;
};

void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.folder << " " << refused.cfg;
}

class CasesRefused : public testing::TestWithParam<Refused> {};

TEST_P(CasesRefused, WithOneClearMessageBeforeAnyWork) {
  const WorkFolder folder(GetParam().folder);
  const Outcome outcome = folder.run(kTrain + std::string(GetParam().cfg) + " -dont_show");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const char* text : GetParam().says)
    EXPECT_TRUE(outcome.says(text)) << text << "\n" << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, CasesRefused,
    testing::Values(
        Refused{"02-cfg-option-before-section", "net.cfg", {"net.cfg:1", "section header"}},
        Refused{"02-cfg-option-before-section", "net2.cfg", {"net2.cfg:1", "empty"}},
        Refused{"02-cfg-option-before-section", "net3.cfg", {"net3.cfg:", "[net] or [network]"}},
        Refused{"05-filters-do-not-match-classes",
                "net.cfg",
                {"net.cfg:43", "net.cfg:37", "filters=18", "(2+4+1)*3 = 21"}},
        Refused{"06-size-not-multiple-of-stride",
                "net.cfg",
                {"net.cfg:44", "26x26", "25x25", "96 or 104"}},
        Refused{"07-route-index-outside-network",
                "net.cfg",
                {"net.cfg:33", "layers=-9", "layer -7", "0..1"}},
        Refused{
            "07-route-index-outside-network", "net2.cfg", {"net2.cfg:25", "layers=7", "layer 7"}},
        Refused{
            "07-route-index-outside-network", "net3.cfg", {"net3.cfg:33", "from=-12", "layer -10"}},
        Refused{
            "07-route-index-outside-network", "net4.cfg", {"net4.cfg:25", "layers has no value"}},
        Refused{
            "09-batch-not-divisible", "net.cfg", {"net.cfg:2", "net.cfg:3", "6/3, 9/3, 8/4, 8/2"}},
        Refused{"15-class-id-out-of-range",
                "net.cfg",
                {"img/02.txt:1: class 2, valid ids are 0 to 1", "numbered from 1",
                 "img/04.txt:1: class -1", "bad_data_limit=1 (percent"}},
        Refused{"25-start-from-finished-weights",
                "net.cfg pre.weights",
                {"8003328 iterations of 4 images", "max_batches=10", "-clear"}},
        Refused{"24-weights-cut-short", "net.cfg cut.weights", {"7204 bytes", "7304", "layer 3"}},
        Refused{"24-weights-cut-short", "net.cfg head.weights", {"10 bytes", "7304"}}));

TEST(Cases, LineEndsAndEncodingsChangeNothing) {
  const std::string plain =
      losses(WorkFolder("39-no-display").run(kTrain + std::string("net.cfg")).out);
  ASSERT_NE(plain, "");
  for (const char* name : {"03-list-crlf", "04-list-utf16"}) {
    const Outcome outcome = WorkFolder(name).run(kTrain + std::string("net.cfg"));
    EXPECT_EQ(losses(outcome.out), plain) << name;
    EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << name;
  }
}

TEST(Cases, NegativeStepsCountFromTheStart) {
  const std::string out =
      WorkFolder("08-steps-with-minus-one").run(kTrain + std::string("net.cfg")).out;
  for (const char* rate : {"1: ", "2: ", "3: ", "6: "}) {
    const std::size_t at = out.find("\n " + std::string(rate));
    ASSERT_NE(at, std::string::npos);
    const std::string line = out.substr(at + 1, out.find('\n', at + 1) - at);
    EXPECT_NE(line.find(rate == std::string("3: ") ? "0.001000 rate" : "0.000100 rate"),
              std::string::npos)
        << line;
  }
}

TEST(Cases, ResumeCountsImagesWithOtherSubdivisions) {
  const WorkFolder folder("09-batch-not-divisible");
  const Outcome first = folder.run(kTrain + std::string("net_ok.cfg"));
  EXPECT_TRUE(first.prints(" 80 images")) << first.out;
  std::string cfg = slurp(folder / "net_ok.cfg");
  cfg.replace(cfg.find("subdivisions=4"), 14, "subdivisions=2");
  cfg.replace(cfg.find("max_batches=10"), 14, "max_batches=11");
  put(folder / "net_ok.cfg", cfg);
  const Outcome second =
      folder.run("detector train obj.data net_ok.cfg backup/net_ok_final.weights");
  EXPECT_TRUE(second.prints(" 11: ")) << second.out << second.err;
  EXPECT_FALSE(second.prints(" 10: "));
}

TEST(Cases, LabelsAreFoundByWholePathParts) {
  const Outcome outcome = WorkFolder("13-label-path-rewrite").run(kTrain + std::string("net.cfg"));
  EXPECT_TRUE(outcome.says("3 images, 3 label files, 4 boxes")) << outcome.err;
}

TEST(Cases, MissingLabelFileIsBackgroundOrAnError) {
  const WorkFolder folder("14-missing-label-file");
  const Outcome outcome = folder.run(kTrain + std::string("net.cfg"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.says("1 of 4 images has no label file")) << outcome.err;
  EXPECT_TRUE(outcome.says("img/03.txt"));
  EXPECT_EQ(folder.run(kTrain + std::string("net.cfg -strict")).code, 3);
}

TEST(Cases, BadBoxesAreNamedAndTheRestIsUsed) {
  const WorkFolder folder("16-box-out-of-range");
  write_cfg_with(folder, "bad_data_limit=100", "all.cfg");
  const Outcome outcome = folder.run(kTrain + std::string("all.cfg"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.says("7 boxes: 2 used, 1 clipped, 5 dropped")) << outcome.err;
  for (const char* text : {"img/01.txt:1: centre outside", "img/02.txt:1: no area",
                           "img/02.txt:2: no area", "img/03.txt:1: not finite",
                           "img/03.txt:2: sticks out", "img/04.txt:1: looks like pixels"}) {
    EXPECT_TRUE(outcome.says(text)) << text;
  }
  EXPECT_FALSE(outcome.prints("nan")) << outcome.out;
}

TEST(Cases, ExactDuplicatesAreSaidAndMayBeLeftOut) {
  const WorkFolder folder("17-duplicate-boxes");
  const Outcome trained = folder.run(kTrain + std::string("net.cfg"));
  ASSERT_EQ(trained.code, 0);
  EXPECT_TRUE(trained.says("2 x exact duplicate")) << trained.err;
  EXPECT_TRUE(trained.says("img/01.txt:2: exact duplicate of line 1"));
  EXPECT_TRUE(trained.says("img/02.txt:2: same box as line 1 with class 0"));
  EXPECT_TRUE(trained.says("repeated images in the list: 1"));
  const std::string map = "detector map obj.data net.cfg backup/net_final.weights";
  const Outcome all = folder.run(map);
  EXPECT_TRUE(all.prints("unique_truth_count = 8")) << all.out;
  EXPECT_TRUE(all.says("2 of the 8 truth boxes are exact duplicates")) << all.err;
  const Outcome fewer = folder.run(map + " -drop_duplicates");
  EXPECT_TRUE(fewer.prints("unique_truth_count = 6")) << fewer.out;
}

TEST(Cases, UnreadableImagesAreNamedOnceAndReplaced) {
  for (const char* name : {"21-truncated-jpeg", "22-wrong-file-type-in-jpg"}) {
    const WorkFolder folder(name);
    write_cfg_with(folder, "bad_data_limit=100", "all.cfg");
    const Outcome outcome = folder.run(kTrain + std::string("all.cfg"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.prints(" 10: ")) << outcome.out;
    EXPECT_TRUE(outcome.says(" of 4 images could not be used, ")) << outcome.err;
    const std::size_t first = outcome.err.find("img/03.jpg");
    ASSERT_NE(first, std::string::npos);
    EXPECT_EQ(outcome.err.find("img/03.jpg", first + 1), std::string::npos) << outcome.err;
    const Outcome refused = folder.run(kTrain + std::string("net.cfg"));
    EXPECT_EQ(refused.code, 3);
    EXPECT_TRUE(refused.says("bad_data_limit=1 (percent")) << refused.err;
    if (std::string(name).starts_with("21")) continue;  // its validation list has good images only
    const std::string map = "detector map obj.data net.cfg backup/all_final.weights";
    EXPECT_EQ(folder.run(map).code, 3);
    EXPECT_EQ(folder.run(map + " -tolerate_bad_images").code, 0);
  }
}

TEST(Cases, GreyPicturesAndTheirColourCopiesAreOne) {
  const WorkFolder folder("23-one-channel-input");
  write_rgb(folder, "img/01.png", "rgb.png");
  ASSERT_NE(slurp(folder / "rgb.png"), slurp(folder / "img/01.png"));
  for (const char* net : {"net1", "net3"}) {
    const std::string name = net;
    const Outcome trained = folder.run("detector train obj.data " + name + ".cfg -map -dont_show");
    ASSERT_EQ(trained.code, 0) << trained.err;
    const std::string test = "detector test obj.data " + name + ".cfg backup/" + name +
                             "_final.weights -thresh 0 --json ";
    auto grey = parse_json(folder.run(test + "img/01.png").out)["images"][0]["detections"];
    auto colour = parse_json(folder.run(test + "rgb.png").out)["images"][0]["detections"];
    EXPECT_FALSE(grey.empty());
    EXPECT_EQ(grey, colour) << net;
  }
}

TEST(Cases, AFileThatEndsBetweenLayersIsOnlyAStart) {
  const WorkFolder folder("24-weights-cut-short");
  const Outcome trained = folder.run(kTrain + std::string("net.cfg edge.weights"));
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(trained.says("1 of 3 layers with weights loaded")) << trained.err;
  EXPECT_EQ(folder.run("detector map obj.data net.cfg full.weights").code, 0);
  for (const char* file : {"edge", "cut", "head"}) {
    const Outcome refused =
        folder.run("detector map obj.data net.cfg " + std::string(file) + ".weights");
    EXPECT_EQ(refused.code, 3) << file;
    EXPECT_EQ(refused.out, "") << file;
  }
}

TEST(Cases, FinishedWeightsStartAgainWithClear) {
  const Outcome outcome = WorkFolder("25-start-from-finished-weights")
                              .run(kTrain + std::string("net.cfg pre.weights -clear"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("\n 1: "));
  EXPECT_TRUE(outcome.prints("\n 10: "));
  EXPECT_TRUE(outcome.prints("0.000063 rate")) << "burn-in";
}

TEST(Cases, RandomSizesAreAnnouncedWithTheirMemory) {
  const Outcome outcome = WorkFolder("27-random-size-memory").run(kTrain + std::string("net.cfg"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.says("sizes 64 x 64 to 128 x 128")) << outcome.err;
  EXPECT_TRUE(outcome.says("this process may use ")) << outcome.err;
}

TEST(Cases, ALossThatIsNotFiniteSpoilsNoFile) {
  const WorkFolder folder("29-loss-becomes-nan");
  const Outcome stopped = folder.run(kTrain + std::string("net.cfg"));
  EXPECT_EQ(stopped.code, 1);
  EXPECT_TRUE(stopped.says("iteration 3: the loss is not finite, first in L0.")) << stopped.err;
  EXPECT_TRUE(stopped.says("had saved no weights yet")) << stopped.err;
  EXPECT_FALSE(folder.has("backup/net_final.weights"));
  const Outcome skipping = folder.run(kTrain + std::string("net.cfg -on_nan skip"));
  EXPECT_EQ(skipping.code, 1) << "the number of skipped updates has a limit";
  EXPECT_TRUE(skipping.says("iteration 5: the loss is not finite")) << skipping.err;
}

TEST(Cases, CrossIterationNormalisation) {
  const WorkFolder folder("31-cbn-cfg-options");
  const auto train = [&](const std::string& cfg) {
    return losses(folder.run("detector train obj.data " + cfg + ".cfg w.weights -clear").out);
  };
  const auto map = [&](const std::string& cfg) {
    return folder.run("detector map obj.data " + cfg + ".cfg w.weights").out;
  };
  const std::string plain = train("bn1"), plain4 = train("s4_bn1"), cross4 = train("s4_bn2");
  ASSERT_NE(plain, "");
  EXPECT_EQ(train("bn2"), plain);
  EXPECT_EQ(train("cbn"), plain);
  EXPECT_NE(cross4, plain4);
  EXPECT_EQ(train("s4_cbn"), cross4);
  EXPECT_EQ(map("bn2"), map("bn1"));
  EXPECT_EQ(map("cbn"), map("bn1"));
}

TEST(Cases, WeightsDependOnTheSeedAlone) {
  const WorkFolder folder("33-same-seed-same-result");
  const auto train = [&](const char* flags) {
    EXPECT_EQ(folder.run(kTrain + std::string("net.cfg ") + flags).code, 0);
    return slurp(folder / "backup/net_final.weights");
  };
  const std::string one = train("-seed 5 -loader_threads 1");
  ASSERT_GT(one.size(), 7000U);
  EXPECT_EQ(train("-seed 5 -loader_threads 4"), one);
  EXPECT_NE(train("-seed 6"), one);
  const std::string log = slurp(folder / "backup/net_metrics.jsonl");
  const auto last = parse_json(log.substr(log.rfind('\n', log.size() - 2) + 1));
  EXPECT_EQ(last["seed"], 6);
}

TEST(Cases, APerfectDetectorHasFullPrecisionAtAnyPoints) {
  const WorkFolder folder("35-average-precision-first-hit");
  for (const char* points : {"0", "11", "101"}) {
    const Outcome outcome =
        folder.run("detector map obj.data net.cfg fix.weights -points " + std::string(points));
    EXPECT_TRUE(outcome.prints("ap = 100.00%")) << outcome.out;
    EXPECT_TRUE(outcome.prints("TP = 1, FP = 0, FN = 0, average IoU = 100.00 %")) << outcome.out;
  }
}

}  // namespace
}  // namespace lantern::cli
