// classifier predict, valid and its relatives, run through the program.
#include <regex>

#include "cli/classifier_folder.hpp"

namespace lantern::cli {
namespace {

TEST_F(Classifier, ValidMultiAveragesOverSizesAndMirrorImages) {
  ASSERT_EQ(train().code, 0);
  const std::string rest = " cls.data net.cfg backup/net_final.weights --json=v.json -quiet";
  const Outcome multi = folder.run("classifier validmulti" + rest);
  ASSERT_EQ(multi.code, 0) << multi.err;
  EXPECT_TRUE(multi.prints("11: top 1: ")) << multi.out;
  EXPECT_FALSE(multi.prints("12: top 1: ")) << multi.out;
  const auto json = parse_json(slurp(folder / "v.json"));
  EXPECT_EQ(json["view"], "five_sizes");
  EXPECT_EQ(json["images"], 12);
  // A network of one size is refused with the layer that does not fit.
  put(folder / "fixed.cfg",
      slurp(folder / "net.cfg") + "\n[crop]\ncrop_width=20\ncrop_height=20\n");
  EXPECT_EQ(folder.run("classifier validmulti cls.data fixed.cfg backup/net_final.weights").code,
            3);
}

TEST_F(Classifier, PredictShowsTheFirstClassesAndGoesOnBehindABadImage) {
  write_cfg("net.cfg", 40);
  ASSERT_EQ(train().code, 0);
  const std::string verb = "classifier predict cls.data net.cfg backup/net_final.weights ";
  const Outcome one = folder.run(verb + "valid/1_bars.png -quiet");
  EXPECT_EQ(one.code, 0) << one.err;
  const std::regex form(
      R"(24 20\nvalid/1_bars\.png: Predicted in [0-9.]+ milli-seconds\.\n\w+: [01]\.[0-9]{6}\n\w+: [01]\.[0-9]{6}\n)");
  EXPECT_TRUE(std::regex_match(one.out, form)) << one.out << "top=2 of the .data file";
  put(folder / "bad.png", "GIF89a");
  const Outcome several = folder.run(verb + "-t 1 --json=p.json -batch 2",
                                     "valid/0_lines.png\nbad.png\nvalid/1_bars.png\n");
  EXPECT_EQ(several.code, 3);
  EXPECT_TRUE(several.says("bad.png")) << several.err;
  const auto json = parse_json(slurp(folder / "p.json"));
  ASSERT_EQ(json["images"].size(), 3U);
  EXPECT_EQ(json["images"][0]["classes"].size(), 1U);
  EXPECT_TRUE(json["images"][1].contains("error"));
  EXPECT_EQ(json["images"][2]["path"], "valid/1_bars.png");
  EXPECT_EQ(folder.run(verb + "bad.png --tolerate-bad-images").code, 0);
}

// Mean of the probabilities of ten pictures is what valid10 counts: of a picture that looks the
// same everywhere all ten are alike, so it agrees with the others.
TEST_F(Classifier, OtherViewsHaveVerbsOfTheirOwn) {
  write_cfg("net.cfg", 40);
  ASSERT_EQ(train().code, 0);
  const auto confidence = [&](const std::string& verb, const char* batch) {
    const Outcome outcome = folder.run(
        fmt::format("classifier {} cls.data net.cfg backup/net_final.weights --json -quiet "
                    "-batch {}",
                    verb, batch));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto json = parse_json(outcome.out);
    std::vector<double> values;
    for (const auto& one : json["predictions"]) values.push_back(one["confidence"]);
    EXPECT_EQ(values.size(), 12U);
    return std::pair{json["view"].get<std::string>(), values};
  };
  const auto [middle, once] = confidence("valid", "1");
  const auto [ten, tenfold] = confidence("valid10", "1");
  const auto [whole, stretched] = confidence("validcrop", "1");
  EXPECT_EQ(middle, "centre_crop");
  EXPECT_EQ(ten, "ten_crops");
  EXPECT_EQ(whole, "stretched");
  for (std::size_t i = 2; i < 12; i += 3) {  // plain
    EXPECT_NEAR(tenfold[i], once[i], 1e-5);
    EXPECT_NEAR(stretched[i], once[i], 1e-5);
  }
  EXPECT_GT(std::abs(tenfold[0] - once[0]), 1e-5) << "stripes are seen at other places";
  EXPECT_NE(stretched, once);
  for (const char* batch : {"4", "32"}) {
    for (const auto& [verb, values] :
         {std::pair{"valid", once}, {"valid10", tenfold}, {"validcrop", stretched}}) {
      const std::vector<double> other = confidence(verb, batch).second;
      for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(other[i], values[i], 1e-5) << verb << batch;
    }
  }
}

TEST(ClassifierCases, ValidAndPredictAgree) {
  const WorkFolder folder("36-classifier-valid-and-predict-agree");
  const Outcome valid = folder.run("classifier valid cls.data net.cfg w.weights --json -quiet");
  ASSERT_EQ(valid.code, 0) << valid.err;
  const auto predictions = parse_json(valid.out)["predictions"];
  ASSERT_EQ(predictions.size(), 4U);
  int right = 0;
  for (const auto& one : predictions) {
    const Outcome predict = folder.run("classifier predict cls.data net.cfg w.weights " +
                                       one["path"].get<std::string>() + " --json -quiet");
    ASSERT_EQ(predict.code, 0) << predict.err;
    const auto first = parse_json(predict.out)["images"][0]["classes"][0];
    EXPECT_EQ(first["class_id"], one["class_id"]);
    EXPECT_EQ(first["confidence"], one["confidence"]);
    right += one["class_id"] == one["truth"] ? 1 : 0;
  }
  EXPECT_EQ(parse_json(valid.out)["top1"], right / 4.0);
}

}  // namespace
}  // namespace lantern::cli
