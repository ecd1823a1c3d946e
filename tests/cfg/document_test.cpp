#include "cfg/document.hpp"

#include <gtest/gtest.h>

namespace lantern::cfg {
namespace {

struct Parsed {
  Document document;
  Diagnostics diagnostics;
  std::string messages() const {
    std::string out;
    for (const auto& entry : diagnostics.entries()) out += entry.to_string() + "\n";
    return out;
  }
};

Parsed parse_text(std::string_view text) {
  Parsed parsed;
  parsed.document = parse("net.cfg", text, parsed.diagnostics);
  return parsed;
}

TEST(CfgDocument, SplitsSectionsAndOptionsWithPositions) {
  const Parsed p = parse_text("# head\n[net]\n  batch = 64 \n\n[convolutional]\nsize=3");
  EXPECT_EQ(p.messages(), "");
  ASSERT_EQ(p.document.sections.size(), 2U);
  EXPECT_EQ(p.document.sections[0].name, "net");
  EXPECT_EQ(p.document.sections[0].line, 2);
  ASSERT_EQ(p.document.sections[0].options.size(), 1U);
  const Option& batch = p.document.sections[0].options[0];
  EXPECT_EQ(batch.key, "batch");
  EXPECT_EQ(batch.value, "64");
  EXPECT_EQ(batch.line, 3);
  EXPECT_EQ(batch.column, 3);
  EXPECT_EQ(batch.value_column, 11);
  EXPECT_EQ(p.document.sections[1].options[0].value, "3");  // the last line has no newline
}

TEST(CfgDocument, SkipsAByteOrderMarkAndWindowsLineEnds) {
  const Parsed p = parse_text("\xEF\xBB\xBF[net]\r\nbatch=4\r\n\r\n[route]\r\nlayers=-1\r\n");
  EXPECT_EQ(p.messages(), "");
  ASSERT_EQ(p.document.sections.size(), 2U);
  EXPECT_EQ(p.document.sections[0].options[0].value, "4");
}

TEST(CfgDocument, CutsInlineCommentsOfEveryKindOfValue) {
  const Parsed p = parse_text(
      "[net] # first\nbatch=40 #32\npolicy=steps # not poly\nsteps=1,2 # a, b\n; whole line\n");
  EXPECT_EQ(p.messages(), "");
  const auto& options = p.document.sections[0].options;
  ASSERT_EQ(options.size(), 3U);
  EXPECT_EQ(options[0].value, "40");
  EXPECT_EQ(options[1].value, "steps");
  EXPECT_EQ(options[2].value, "1,2");
}

TEST(CfgDocument, KeepsBlanksInsideValuesForFileNames) {
  const Parsed p = parse_text("[region]\ntree = my data/9k.tree \n");
  EXPECT_EQ(p.document.sections[0].options[0].value, "my data/9k.tree");
}

TEST(CfgDocument, SplitsAtTheFirstEqualsSign) {
  const Parsed p = parse_text("[region]\nmap=a=b\n");
  EXPECT_EQ(p.document.sections[0].options[0].value, "a=b");
}

TEST(CfgDocument, WarnsOfDuplicatesAndLinesWithoutEqualsSign) {
  const Parsed p = parse_text("[net]\nbatch=1\nbatch=64\nflip\n");
  EXPECT_EQ(
      p.messages(),
      "net.cfg:3:1: warning: [net] batch was given in line 2 already; the first value '1' is used\n"
      "net.cfg:4:1: warning: 'flip' has no '='; the line is ignored\n");
  EXPECT_EQ(p.document.sections[0].options.size(), 2U);
}

TEST(CfgDocument, RefusesAnOptionBeforeTheFirstSectionOnce) {
  const Parsed p = parse_text("classes=1\nfilters=18\n");
  EXPECT_EQ(p.messages(),
            "net.cfg:1:1: error: 'classes=1' stands before the first section; a section header "
            "such as [net] is "
            "expected first\n");
}

TEST(CfgDocument, RefusesAnEmptyFile) {
  EXPECT_EQ(
      parse_text("").messages(),
      "net.cfg:1:1: error: the file has no sections (is it empty?); a cfg starts with [net]\n");
  EXPECT_TRUE(parse_text("# nothing\n\n").diagnostics.has_errors());
}

TEST(CfgDocument, RefusesTextAfterASectionNameAndAnOpenBracket) {
  EXPECT_EQ(parse_text("[net] batch=1\n").messages(),
            "net.cfg:1:1: error: 'batch=1' follows [net]; only a comment may stand after a section "
            "name\n");
  EXPECT_EQ(parse_text("[net\n").messages(),
            "net.cfg:1:1: error: section name '[net' has no closing ']'\n");
}

TEST(CfgDocument, RefusesUtf16) {
  const std::string text("\xFF\xFE[\0n\0", 6);
  EXPECT_NE(parse_text(text).messages().find("UTF-16"), std::string::npos);
}

}  // namespace
}  // namespace lantern::cfg
