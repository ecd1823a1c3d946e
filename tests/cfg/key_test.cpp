#include "cfg/key.hpp"

#include <gtest/gtest.h>

#include <array>

namespace lantern::cfg {
namespace {

enum class Colour { kRed, kGreen };

struct ToySpec {
  int stride = 0, size = 0, special = 0, step = 0;
  float ratio = 0;
  std::string path, word;
  std::vector<int> mask;
  std::vector<float> anchors;
  std::optional<int> index;
  Colour colour = Colour::kRed;
};

constexpr std::array<Word, 3> kColours{{{"red", 0}, {"green", 1}, {"lime", 1}}};
constexpr std::array<Word, 1> kAuto{{{"auto", -1}}};
using K = Key<ToySpec>;
constexpr std::array kKeys{
    K{.name = "stride",
      .field = &ToySpec::stride,
      .otherwise = 1,
      .min = 1,
      .unit = "px",
      .doc = "Step."},
    K{.name = "size",
      .field = &ToySpec::size,
      .otherwise = from("= stride", [](const auto& s) { return s.stride; }),
      .min = 1,
      .max = 9,
      .doc = "Side."},
    K{.name = "special", .field = &ToySpec::special, .min = 0, .doc = "Count.", .words = kAuto},
    K{.name = "step",
      .field = &ToySpec::step,
      .otherwise = 7,
      .doc = "Truncated.",
      .truncates = true},
    K{.name = "ratio",
      .field = &ToySpec::ratio,
      .otherwise = 0.5,
      .max = 1,
      .doc = "Share | part."},
    K{.name = "path", .field = &ToySpec::path, .otherwise = "", .doc = "File.", .is_path = true},
    K{.name = "word", .field = &ToySpec::word, .otherwise = "x", .doc = "Text."},
    K{.name = "mask", .field = &ToySpec::mask, .min = 0, .doc = "Numbers."},
    K{.name = "anchors", .field = &ToySpec::anchors, .otherwise = "1,2.5", .doc = "Pairs."},
    K{.name = "index", .field = &ToySpec::index, .doc = "Layer."},
    K{.name = "colour",
      .field = word_field<ToySpec, &ToySpec::colour>(),
      .otherwise = "green",
      .doc = "Colour.",
      .words = kColours},
};

struct Result {
  ToySpec spec;
  std::string messages;
};

Result read(std::string_view options) {
  Diagnostics diagnostics;
  const Document document = parse("net.cfg", "[toy]\n" + std::string(options), diagnostics);
  SectionReader reader("net.cfg", document.sections.at(0), diagnostics);
  Result result;
  reader.read<ToySpec>(result.spec, kKeys);
  reader.report_unknown_keys();
  for (const auto& entry : diagnostics.entries()) result.messages += entry.to_string() + "\n";
  return result;
}

TEST(CfgKey, DefaultsAndDefaultsFromOtherKeys) {
  const Result r = read("stride=3\n");
  EXPECT_EQ(r.messages, "");
  EXPECT_EQ(r.spec.size, 3);
  EXPECT_EQ(r.spec.step, 7);
  EXPECT_FLOAT_EQ(r.spec.ratio, 0.5F);
  EXPECT_EQ(r.spec.word, "x");
  EXPECT_TRUE(r.spec.mask.empty());
  EXPECT_EQ(r.spec.anchors, (std::vector<float>{1, 2.5}));
  EXPECT_FALSE(r.spec.index.has_value());
  EXPECT_EQ(r.spec.colour, Colour::kGreen);
}

TEST(CfgKey, ReadsEveryType) {
  const Result r = read(
      "size=+4\nratio=.25\npath=a b.txt\nword=l m\nmask=0, 2\nanchors=1e1, -2.5\nindex=-3\n"
      "colour=lime\nspecial=auto\nstep=3.9\n");
  EXPECT_EQ(r.messages, "");
  EXPECT_EQ(r.spec.size, 4);
  EXPECT_FLOAT_EQ(r.spec.ratio, 0.25F);
  EXPECT_EQ(r.spec.path, "a b.txt");
  EXPECT_EQ(r.spec.word, "lm");
  EXPECT_EQ(r.spec.mask, (std::vector<int>{0, 2}));
  EXPECT_EQ(r.spec.anchors, (std::vector<float>{10, -2.5}));
  EXPECT_EQ(r.spec.index, -3);
  EXPECT_EQ(r.spec.colour, Colour::kGreen);
  EXPECT_EQ(r.spec.special, -1);
  EXPECT_EQ(r.spec.step, 3);
}

TEST(CfgKey, JoinsNumbersOverBlanksWithAWarning) {
  const Result r = read("anchors=61,45   61,45\n");
  EXPECT_EQ(r.spec.anchors, (std::vector<float>{61, 4561, 45}));  // as Darknet reads it
  EXPECT_EQ(r.messages,
            "net.cfg:2:14: warning: [toy] anchors: blanks are deleted, so the numbers on both "
            "sides become one; put a "
            "comma between them\n");
}

TEST(CfgKey, FirstDuplicateWinsAndALineWithoutValueDoesNotCount) {
  const Result r = read("size=\nsize=2\nsize=3\n");
  EXPECT_EQ(r.spec.size, 2);
  EXPECT_NE(r.messages.find("net.cfg:2:1: warning: [toy] size has no value; the line is ignored"),
            std::string::npos);
  EXPECT_NE(r.messages.find("net.cfg:4:1: warning: [toy] size was given in line 3 already"),
            std::string::npos);
}

TEST(CfgKey, ReportsNumbersThatAreNone) {
  EXPECT_EQ(read("size=big\n").messages,
            "net.cfg:2:1: error: [toy] size is 'big', want an integer\n");
  EXPECT_EQ(read("special=few\n").messages,
            "net.cfg:2:1: error: [toy] special is 'few', want an integer or auto\n");
  EXPECT_EQ(read("ratio=x\n").messages, "net.cfg:2:1: error: [toy] ratio is 'x', want a number\n");
  EXPECT_EQ(read("ratio=nan\n").messages,
            "net.cfg:2:1: error: [toy] ratio is nan, want a finite number\n");
  EXPECT_EQ(read("ratio=-1e99\n").messages,
            "net.cfg:2:1: error: [toy] ratio is -1e99, want a finite number\n");
  EXPECT_EQ(read("mask=0,,1\n").messages,
            "net.cfg:2:1: error: [toy] mask: item 2 is '', want an integer\n");
  EXPECT_EQ(read("size=99999999999999999999\n").messages,
            "net.cfg:2:1: error: [toy] size is 99999999999999999999, which is too large\n");
}

TEST(CfgKey, ReadsTheLeadingNumberAsDarknetAndSaysSo) {
  const Result r = read("stride=1e3\nratio=0.5x\n");
  EXPECT_EQ(r.spec.stride, 1);
  EXPECT_FLOAT_EQ(r.spec.ratio, 0.5F);
  EXPECT_EQ(r.messages,
            "net.cfg:2:1: warning: [toy] stride is '1e3', not an integer; it is read as 1\n"
            "net.cfg:3:1: warning: [toy] ratio is '0.5x'; it is read as 0.5\n");
  EXPECT_EQ(read("stride=2.0\n").messages, "");
}

TEST(CfgKey, DropsATrailingComma) {
  const Result r = read("mask=0,1,\n");
  EXPECT_EQ(r.spec.mask, (std::vector<int>{0, 1}));
  EXPECT_EQ(r.messages, "net.cfg:2:1: warning: [toy] mask ends with a comma; it is ignored\n");
}

TEST(CfgKey, ChecksRanges) {
  EXPECT_EQ(read("size=0\n").messages, "net.cfg:2:1: error: [toy] size is 0, want >= 1\n");
  EXPECT_EQ(read("size=10\n").messages, "net.cfg:2:1: error: [toy] size is 10, want <= 9\n");
  EXPECT_EQ(read("ratio=1.5\n").messages, "net.cfg:2:1: error: [toy] ratio is 1.5, want <= 1\n");
  EXPECT_EQ(read("mask=0,-1\n").messages,
            "net.cfg:2:1: error: [toy] mask: item 2 is -1, want >= 0\n");
}

TEST(CfgKey, NamesTheWordsAndANearOne) {
  EXPECT_EQ(read("colour=gren\n").messages,
            "net.cfg:2:1: error: [toy] colour is 'gren', did you mean 'green'?; want one of red, "
            "green, lime\n");
  EXPECT_EQ(read("colour=#c\n").messages,
            "net.cfg:2:1: warning: [toy] colour has no value; the line is ignored\n");
}

TEST(CfgKey, HintsAtTheSpellingOfAnUnknownKey) {
  EXPECT_EQ(read("siz=3\n").messages,
            "net.cfg:2:1: warning: [toy] has no key 'siz'; did you mean 'size'?\n");
  EXPECT_EQ(read("qqqqqq=3\n").messages,
            "net.cfg:2:1: warning: [toy] has no key 'qqqqqq'; it is ignored\n");
}

TEST(CfgKey, DescribesItself) {
  const auto infos = describe_all<ToySpec>(kKeys);
  ASSERT_EQ(infos.size(), kKeys.size());
  EXPECT_EQ(infos[1].default_text, "= stride");
  EXPECT_EQ(infos[1].max, 9);
  EXPECT_EQ(infos[10].type, ValueType::kWord);
  EXPECT_EQ(infos[10].default_text, "green");
  const SectionInfo section{
      .name = "toy", .aliases = {"plaything"}, .doc = "A toy.", .keys = infos};
  const std::string help = help_text(section);
  EXPECT_NE(help.find("[toy]  A toy.\n  also written [plaything]\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  size (default = stride)\n"), std::string::npos) << help;
  EXPECT_NE(help.find("int, 1..9"), std::string::npos) << help;
  const std::string page = markdown(section);
  EXPECT_NE(page.find("| `ratio` | float, <= 1 | 0.5 | Share \\| part. |"), std::string::npos)
      << page;
  EXPECT_NE(page.find("| `colour` | red \\| green \\| lime | green | Colour. |"), std::string::npos)
      << page;
}

}  // namespace
}  // namespace lantern::cfg
