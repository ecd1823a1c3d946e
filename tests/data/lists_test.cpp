#include "data/lists.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "test_files.hpp"

namespace lantern::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string utf16(std::string_view text, bool little) {
  std::string out = little ? "\xFF\xFE" : "\xFE\xFF";
  for (const char c : text) out += little ? std::string{c, '\0'} : std::string{'\0', c};
  return out;
}

TEST(DataFile, TrimsEndsAndKeepsInnerBlanks) {
  Diagnostics diagnostics;
  const DataFile file = parse_data_file(
      "# remark\r\n; another\r\n\r\nclasses = 2\r\n train =  my lists/train #1.txt \r\n",
      "obj.data", diagnostics);
  EXPECT_EQ(file.text("train"), "my lists/train #1.txt");
  EXPECT_EQ(file.integer("classes", 0), 2);
  EXPECT_EQ(file.where("train"), "obj.data:5");
  EXPECT_EQ(file.text("backup", "backup/"), "backup/");
  EXPECT_TRUE(diagnostics.entries().empty());
}

TEST(DataFile, FaultyLinesAreErrorsWithTheirLine) {
  Diagnostics diagnostics;
  const std::string what =
      error_of([&] { parse_data_file("classes=2\ntrain\nvalid=\n", "obj.data", diagnostics); });
  EXPECT_THAT(what, HasSubstr("obj.data:2"));
  EXPECT_THAT(what, HasSubstr("obj.data:3"));
}

TEST(DataFile, FirstOfEqualKeysCountsAndUnknownKeysAreWarned) {
  Diagnostics diagnostics;
  const DataFile file =
      parse_data_file("classes=2\nclasses=3\ntran=a.txt\n", "obj.data", diagnostics);
  EXPECT_EQ(file.integer("classes", 0), 2);
  ASSERT_EQ(diagnostics.entries().size(), 2U);
  EXPECT_THAT(diagnostics.entries()[0].to_string(), HasSubstr("obj.data:2"));
  EXPECT_THAT(diagnostics.entries()[0].to_string(), HasSubstr("line 1"));
  EXPECT_THAT(diagnostics.entries()[1].to_string(), HasSubstr("'train'"));
  EXPECT_THAT(error_of([&] { file.integer("tran", 0); }), HasSubstr("obj.data:3"));
}

TEST(DataFile, PathsAreSoughtBesideTheFile) {
  WorkFolder folder;
  folder.write("set/train.txt", "a.png\n");
  folder.write("here.txt", "a.png\n");
  Diagnostics diagnostics;
  const DataFile file = parse_data_file("train=train.txt\nvalid=here.txt\nnames=none.txt\n",
                                        "set/obj.data", diagnostics);
  EXPECT_EQ(file.file("train"), "set/train.txt");
  EXPECT_EQ(file.file("valid"), "here.txt");
  EXPECT_EQ(file.file("names"), "none.txt");
}

TEST(Names, TrailingBlankLinesDoNotCount) {
  WorkFolder folder;
  folder.write("obj.names", "red\r\n\r\ngreen car\r\n\r\n\r\n");
  EXPECT_THAT(read_names("obj.names"), ElementsAre("red", "", "green car"));
  folder.write("empty.names", "\n");
  EXPECT_THAT(error_of([] { read_names("empty.names"); }), HasSubstr("empty.names"));
}

TEST(Names, CountsThatDiffer) {
  Diagnostics diagnostics;
  const DataFile file = parse_data_file("classes=3\n", "obj.data", diagnostics);
  const std::vector<std::string> two = {"red", "green"};
  check_class_counts(2, "net.cfg:88", &file, &two, "obj.names", diagnostics);
  ASSERT_EQ(diagnostics.entries().size(), 1U);
  const std::string warning = diagnostics.entries()[0].to_string();
  for (const std::string part : {"obj.data:1", "classes=3", "net.cfg:88 has classes=2",
                                 "obj.names has 2 names", "2 is used"}) {
    EXPECT_THAT(warning, HasSubstr(part));
  }
  const std::vector<std::string> three = {"red", "green", "blue"};
  const std::string error = error_of(
      [&] { check_class_counts(2, "net.cfg:88", &file, &three, "obj3.names", diagnostics); });
  EXPECT_THAT(error, HasSubstr("obj3.names"));
  EXPECT_THAT(error, HasSubstr("3 class names"));
  EXPECT_THAT(error, HasSubstr("net.cfg:88 has classes=2"));
}

TEST(ImageList, ReadsEveryEncodingAlike) {
  const std::string text = "img/01.png\nimg/02 b.png\n";
  for (const std::string& bytes : {text, std::string("img/01.png\r\nimg/02 b.png"),
                                   "\xEF\xBB\xBF" + text, utf16(text, true), utf16(text, false)}) {
    const ImageList list = parse_image_list(decode_text(bytes, "train.txt"), "train.txt");
    EXPECT_THAT(list.images, ElementsAre("img/01.png", "img/02 b.png"));
  }
}

TEST(ImageList, UnmarkedWideTextIsRefusedWithTheCommandThatConvertsIt) {
  const std::string what =
      error_of([] { decode_text(utf16("img/01.png\n", true).substr(2), "train.txt"); });
  EXPECT_THAT(what, HasSubstr("train.txt"));
  EXPECT_THAT(what, HasSubstr("iconv -f UTF-16LE"));
}

TEST(ImageList, BeyondTheBasicPlane) {
  // U+1F600 as a surrogate pair.
  EXPECT_EQ(decode_text(std::string("\xFF\xFE\x3D\xD8\x00\xDE", 6), "x"), "\xF0\x9F\x98\x80");
}

TEST(ImageList, SkipsRemarksAndBlankLinesAndCountsRepetitions) {
  const ImageList list = parse_image_list("# set\n\n  a.png \nb.png\na.png\n", "train.txt");
  EXPECT_THAT(list.images, ElementsAre("a.png", "b.png", "a.png"));
  EXPECT_THAT(list.lines, ElementsAre(3, 4, 5));
  EXPECT_EQ(list.repeated, 1);
}

TEST(ImageList, EmptyIsAnError) {
  EXPECT_THAT(error_of([] { parse_image_list("\n# nothing\n", "valid_a.txt"); }),
              HasSubstr("valid_a.txt: has no images"));
}

TEST(ImageList, EntriesAreSoughtBesideTheList) {
  WorkFolder folder;
  folder.write("set/a.png", "x");
  folder.write("b.png", "x");
  EXPECT_THAT(parse_image_list("a.png\nb.png\nc.png\n", "set/train.txt").images,
              ElementsAre("set/a.png", "b.png", "c.png"));
}

}  // namespace
}  // namespace lantern::data
