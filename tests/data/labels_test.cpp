#include "data/labels.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "test_files.hpp"

namespace lantern::data {
namespace {

using ::testing::HasSubstr;

TEST(LabelPath, FollowsTheTable) {
  const std::pair<const char*, const char*> table[] = {
      {"/d/images/train2017/a.jpg", "/d/labels/train2017/a.txt"},
      {"/d/images/val2017/a.JPEG", "/d/labels/val2017/a.txt"},
      {"/d/images/val2014/a.tiff", "/d/labels/val2014/a.txt"},
      {"/d/images/train2014/a.ppm", "/d/labels/train2014/a.txt"},
      {"VOC/JPEGImages/JPEGImages/a.png", "VOC/labels/JPEGImages/a.txt"},
      {"C:\\d\\images\\val2014\\a.bmp", "C:\\d\\labels\\val2014\\a.txt"},
      {"C:\\d\\JPEGImages\\a.bmp", "C:\\d\\labels\\a.txt"},
      {"d/images/a.webp", "d/images/a.txt"},
      {" d/a b.Jpg ", "d/a b.txt"},
      {"d/a.b.jpg", "d/a.b.txt"},
      {"d.jpg/a", "d.jpg/a.txt"},
      {"cat_images/my_raw_1.png", "cat_images/my_raw_1.txt"},
      {"JPEGImages_old/c.png", "JPEGImages_old/c.txt"},
      {"a.jpg.png", "a.jpg.txt"}};
  for (const auto& [image, label] : table) EXPECT_EQ(darknet_label_path(image), label);
}

TEST(LabelPath, ImagesFolderCountsOnlyWhenALabelLiesThere) {
  WorkFolder folder;
  folder.write("set/labels/train/b.txt", "0 .5 .5 .1 .1\n");
  folder.write("both/labels/c.txt", "");
  folder.write("both/images/c.txt", "");
  folder.write("images/x/labels/d.txt", "");
  bool used = false;
  EXPECT_EQ(label_path("set/images/train/b.png", &used), "set/labels/train/b.txt");
  EXPECT_TRUE(used);
  EXPECT_EQ(label_path("both/images/c.png", &used), "both/images/c.txt");
  EXPECT_FALSE(used);
  EXPECT_EQ(label_path("images/x/images/d.png", &used),
            "images/x/labels/d.txt");  // the last one first
  EXPECT_EQ(label_path("none/images/e.png", &used), "none/images/e.txt");
  EXPECT_FALSE(used);
}

TEST(ParseLabels, ReadsWhatIsThere) {
  const LabelFile file = parse_labels("0 0.3 0.3 0.3 0.3\r\n\r\n2\t.6 .6  .4 3e-1\r\n", "a.txt", 3);
  ASSERT_EQ(file.boxes.size(), 2U);
  EXPECT_TRUE(file.issues.empty());
  EXPECT_EQ(file.boxes[1].class_id, 2);
  EXPECT_FLOAT_EQ(file.boxes[1].h, 0.3F);
  EXPECT_EQ(file.boxes[1].line_index, 1);
}

struct OneLine {
  const char* line;
  LabelIssueKind kind;
  const char* part;
};

TEST(ParseLabels, NamesEveryKindOfFault) {
  const OneLine table[] = {
      {"0 .5 .5 .1", LabelIssueKind::kMalformed, "4 fields"},
      {"x .5 .5 .1 .1", LabelIssueKind::kMalformed, "'x'"},
      {"3.0 .5 .5 .1 .1", LabelIssueKind::kMalformed, "3.0"},
      {"0 .5 .5 .1 .1x", LabelIssueKind::kMalformed, ".1x"},
      {"0 0,5 .5 .1 .1", LabelIssueKind::kMalformed, "0,5"},
      {"0 .5 .5 .1 .1 .9", LabelIssueKind::kExtraColumns, "6 columns"},
      {"2 .5 .5 .1 .1", LabelIssueKind::kClassRange, "valid ids are 0 to 1"},
      {"-1 .5 .5 .1 .1", LabelIssueKind::kClassRange, "class -1"},
      {"99999999999 .5 .5 .1 .1", LabelIssueKind::kClassRange, "class 99999999999"},
      {"1 32 32 20 20", LabelIssueKind::kPixels, "looks like pixels"},
      {"0 1.2 .5 .3 .3", LabelIssueKind::kCentreOutside, "1.2"},
      {"0 .5 -.1 .3 .3", LabelIssueKind::kCentreOutside, "-0.1"},
      {"0 .5 .5 0 .3", LabelIssueKind::kNoArea, "no area"},
      {"0 .5 .5 .3 -0.1", LabelIssueKind::kNoArea, "-0.1"},
      {"0 .5 .5 nan .3", LabelIssueKind::kNotFinite, "nan"},
      {"0 inf .5 .1 .3", LabelIssueKind::kNotFinite, "inf"}};
  for (const OneLine& row : table) {
    SCOPED_TRACE(row.line);
    const LabelFile file =
        parse_labels(std::string("0 .2 .2 .1 .1\n") + row.line + "\n0 .3 .3 .1 .1\n", "a.txt", 2);
    ASSERT_EQ(file.issues.size(), 1U);
    EXPECT_EQ(file.issues[0].kind, row.kind);
    EXPECT_TRUE(is_bad(row.kind));
    EXPECT_THAT(file.issues[0].to_string(), HasSubstr("a.txt:2: "));
    EXPECT_THAT(file.issues[0].what, HasSubstr(row.part));
    EXPECT_THAT(file.issues[0].what, HasSubstr("dropped"));
    EXPECT_EQ(file.boxes.size(), 2U);  // the lines around it are used
  }
}

TEST(ParseLabels, SixColumnsEverywhereAreAConfidence) {
  const LabelFile file = parse_labels("0 .5 .5 .1 .1 .9\n1 .4 .4 .1 .1 .8\n", "a.txt", 2);
  EXPECT_TRUE(file.sixth_ignored);
  EXPECT_EQ(file.boxes.size(), 2U);
  EXPECT_TRUE(file.issues.empty());
}

TEST(ParseLabels, SticksOutIsClippedAndRoundingIsSilent) {
  LabelFile file = parse_labels("0 .95 .5 .3 .3\n", "a.txt", 1);
  ASSERT_EQ(file.boxes.size(), 1U);
  EXPECT_EQ(file.issues.at(0).kind, LabelIssueKind::kClipped);
  EXPECT_FALSE(is_bad(LabelIssueKind::kClipped));
  const Label clipped = clip_to_image(file.boxes[0]);
  EXPECT_NEAR(clipped.x, 0.9, 1e-6);
  EXPECT_NEAR(clipped.w, 0.2, 1e-6);
  EXPECT_EQ(clipped.y, 0.5F);
  file = parse_labels("0 .5 .5 1.0005 1.0\n", "a.txt", 1);
  EXPECT_TRUE(file.issues.empty());
  EXPECT_EQ(file.boxes.at(0).w, 1.0F);
  file = parse_labels("0 .5 .5 1.2 .5\n", "a.txt", 1);
  EXPECT_EQ(file.issues.at(0).kind, LabelIssueKind::kTooLarge);
  EXPECT_EQ(file.boxes.size(), 1U);
}

TEST(ParseLabels, ManyLinesAreNoTrouble) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += fmt::format("0 .{} .5 .1 .1\n", 100000 + i);
  EXPECT_EQ(parse_labels(text, "a.txt", 1).boxes.size(), 100000U);
}

TEST(TrackId, FollowsTheFormula) {
  // djb2("a") = 5381 * 33 + 97 = 177670; mod 4000 = 1670.
  EXPECT_EQ(track_id("a", 3), 1670.0F * 4000 + 3);
}

class ScanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 1; i <= 4; ++i) {
      image_list_.images.push_back(fmt::format("img/0{}.png", i));
      image_list_.lines.push_back(i);
    }
  }
  LabelSet scan(int threads = 2) {
    return scan_labels(image_list_, {.classes = 2, .threads = threads});
  }
  WorkFolder folder_;
  ImageList image_list_{.path = "train.txt", .images = {}, .lines = {}};
};

TEST_F(ScanTest, MissingFileIsCountedOnceWithItsPath) {
  for (const char* name : {"img/01.txt", "img/02.txt", "img/04.txt"})
    folder_.write(name, "0 .3 .3 .3 .3\n");
  const LabelSet set = scan();
  EXPECT_EQ(set.missing, 1);
  EXPECT_EQ(set.files, 3);
  EXPECT_TRUE(set.labels[2].empty());
  EXPECT_THAT(set.summary(), HasSubstr("1 of 4 images has no label file"));
  EXPECT_THAT(set.summary(), HasSubstr("img/03.txt"));
  EXPECT_EQ(set.bad_files, 0);
  EXPECT_THROW(scan_labels(image_list_, {.classes = 2, .missing_is_error = true}), Error);
}

TEST_F(ScanTest, ClassOutOfRangeHintsAtNumberingFromOne) {
  folder_.write("img/01.txt", "0 .3 .3 .3 .3\n");
  folder_.write("img/02.txt", "2 .6 .6 .4 .3\n1 .2 .2 .1 .1\n");
  folder_.write("img/03.txt", "");
  folder_.write("img/04.txt", "1 .3 .7 .3 .3\n-1 .5 .5 .5 .5\n");
  const LabelSet set = scan();
  EXPECT_EQ(set.used, 3);
  EXPECT_EQ(set.dropped, 2);
  EXPECT_EQ(set.empty, 1);
  EXPECT_EQ(set.bad_files, 2);
  const std::string text = set.summary();
  EXPECT_THAT(text, HasSubstr("img/02.txt:1: class 2, valid ids are 0 to 1"));
  EXPECT_THAT(text, HasSubstr("numbered from 1"));
  EXPECT_THAT(text, HasSubstr("img/04.txt:2: class -1"));
  set.write_bad_labels("bad_labels.txt");
  EXPECT_THAT(read_file("bad_labels.txt"), HasSubstr("img/04.txt:2: class -1"));
  EXPECT_NO_THROW(check_bad_data_limit(set, 0.5));
  EXPECT_THROW(check_bad_data_limit(set, 0.01), Error);
  EXPECT_THROW(scan_labels(image_list_, {.classes = 2, .strict = true}), Error);
}

TEST_F(ScanTest, DuplicatesAreReportedByKindAndKept) {
  folder_.write("img/01.txt", "0 .3 .3 .3 .3\n0 .3 .3 .3 .3\n0 .3 .3 .3 .3\n");
  folder_.write("img/02.txt", "1 .6 .6 .4 .3\n0 .6 .6 .4 .3\n");
  folder_.write("img/03.txt", "0 .7 .3 .25 .35\n1 .3 .7 .3 .3\n");
  folder_.write("img/04.txt", "1 .5 .5 .5 .5\n");
  image_list_.images.push_back("img/04.png");
  image_list_.lines.push_back(5);
  image_list_.repeated = 1;
  const LabelSet set = scan();
  EXPECT_EQ(set.counts[static_cast<std::size_t>(LabelIssueKind::kDuplicate)], 2);
  EXPECT_EQ(set.counts[static_cast<std::size_t>(LabelIssueKind::kTwoClasses)], 1);
  EXPECT_EQ(set.used, 9);  // image 04 counts twice
  EXPECT_EQ(set.labels[4].size(), 1U);
  EXPECT_THAT(set.summary(), HasSubstr("img/01.txt:3: exact duplicate of line 1"));
  EXPECT_THAT(set.summary(), HasSubstr("repeated images in the list: 1"));
}

TEST_F(ScanTest, ResultDoesNotDependOnThreads) {
  image_list_.images.clear();
  image_list_.lines.clear();
  for (int i = 0; i < 500; ++i) {
    image_list_.images.push_back(fmt::format("many/{}.jpg", i));
    image_list_.lines.push_back(i + 1);
    if (i % 7 != 0)
      folder_.write(fmt::format("many/{}.txt", i),
                    fmt::format("{} .5 .5 .{} .2\n", i % 3, 1 + i % 9));
  }
  const LabelSet one = scan(1);
  const LabelSet four = scan(4);
  EXPECT_EQ(one.summary(), four.summary());
  EXPECT_EQ(one.paths, four.paths);
  EXPECT_EQ(one.missing, 72);
  EXPECT_GT(one.dropped, 100);
}

/// The cases of the shared set, where it is at hand.
class SharedCase : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(LANTERN_SOURCE_DIR) / ".." / "shared" / "cases";
    before_ = std::filesystem::current_path();
    if (!std::filesystem::exists(root_)) GTEST_SKIP() << "no shared cases";
  }
  void TearDown() override { std::filesystem::current_path(before_); }
  LabelSet scan(const std::string& name, const std::string& list = "train.txt") {
    std::filesystem::current_path(root_ / name);
    return scan_labels(read_image_list(list), {.classes = 2});
  }
  std::filesystem::path root_, before_;
};

TEST_F(SharedCase, CountsAreThoseOfTheDescription) {
  LabelSet set = scan("03-list-crlf");
  EXPECT_EQ(set.files, 4);
  EXPECT_EQ(set.used, 5);
  set = scan("04-list-utf16");
  EXPECT_EQ(set.files, 4);
  set = scan("12-spaces-in-paths", "my lists/train set.txt");
  EXPECT_EQ(set.missing, 0);
  set = scan("13-label-path-rewrite");
  EXPECT_EQ(set.images, 3);
  EXPECT_EQ(set.files, 3);
  EXPECT_EQ(set.used, 4);
  EXPECT_TRUE(set.images_rule_used);
  set = scan("14-missing-label-file");
  EXPECT_EQ(set.missing, 1);
  set = scan("15-class-id-out-of-range");
  EXPECT_EQ(set.dropped, 2);
  EXPECT_THAT(set.summary(), HasSubstr("numbered from 1"));
  set = scan("16-box-out-of-range");
  EXPECT_EQ(set.dropped, 5);
  EXPECT_EQ(set.clipped, 1);
  set = scan("17-duplicate-boxes");
  EXPECT_EQ(set.counts[static_cast<std::size_t>(LabelIssueKind::kDuplicate)], 2);
  EXPECT_EQ(set.counts[static_cast<std::size_t>(LabelIssueKind::kTwoClasses)], 1);
  EXPECT_EQ(set.repeated_images, 1);
}

}  // namespace
}  // namespace lantern::data
