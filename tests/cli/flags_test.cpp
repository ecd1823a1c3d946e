#include "cli/flags.hpp"

#include <array>

#include "core/error.hpp"
#include "gtest/gtest.h"

namespace lantern::cli {
namespace {

constexpr std::array kFlags{
    Flag{.name = "clear", .used_by = "train"},
    Flag{.name = "dont_show"},
    Flag{.name = "num_of_clusters",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "5",
         .min = 1},
    Flag{.name = "thresh",
         .kind = ValueKind::kFloat,
         .value = "P",
         .otherwise = "0.25",
         .min = 0,
         .max = 1},
    Flag{.name = "out", .kind = ValueKind::kText, .value = "FILE"},
    Flag{.name = "json", .kind = ValueKind::kOptionalText, .value = "FILE"},
    Flag{.name = "i", .kind = ValueKind::kText, .value = "N"},
    Flag{.name = "gpus", .kind = ValueKind::kText, .value = "LIST", .refusal = "no device"},
};

Arguments parse(std::vector<std::string> args) {
  return parse_arguments({std::span<const Flag>(kFlags)}, "verb", args);
}

std::string refusal(std::vector<std::string> args) {
  try {
    parse(std::move(args));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST(Flags, StandAnywhereWithOneOrTwoDashes) {
  const Arguments a =
      parse({"-clear", "a.data", "--thresh", "0.5", "b.cfg", "-out=x y.json", "-i", "-1"});
  EXPECT_EQ(a.positionals, (std::vector<std::string>{"a.data", "b.cfg"}));
  EXPECT_TRUE(a.has("clear"));
  EXPECT_DOUBLE_EQ(a.number("thresh"), 0.5);
  EXPECT_EQ(a.text("out"), "x y.json");
  EXPECT_EQ(a.text("i"), "-1");
}

TEST(Flags, EmptyWordsAreRefused) {
  EXPECT_EQ(refusal({"a", ""}), "verb: argument 2 is empty (a variable that is not set?)");
  EXPECT_EQ(refusal({"-out", ""}), "-out needs a value (FILE), it is empty");
  EXPECT_EQ(refusal({"--out="}), "--out needs a value (FILE), it is empty");
  EXPECT_EQ(refusal({"--json="}), "--json needs a value (FILE), it is empty");
  EXPECT_TRUE(parse({"--json"}).has("json"));
}

TEST(Flags, DashesUnderscoresAndCapitalsDoNotMatter) {
  EXPECT_TRUE(parse({"--dont-show"}).has("dont_show"));
  EXPECT_TRUE(parse({"-dontshow"}).has("dont_show"));
  EXPECT_TRUE(parse({"-Dont_Show"}).has("dont_show"));
}

TEST(Flags, GiveTheTablesDefault) {
  EXPECT_EQ(parse({}).integer("num_of_clusters"), 5);
  EXPECT_FALSE(parse({}).given_integer("num_of_clusters").has_value());
  EXPECT_EQ(parse({"-num_of_clusters", "9"}).given_integer("num_of_clusters"), 9);
}

TEST(Flags, OptionalValueNeverTakesTheNextWord) {
  const Arguments a = parse({"--json", "net.cfg"});
  EXPECT_EQ(a.positionals, std::vector<std::string>{"net.cfg"});
  EXPECT_EQ(a.text("json"), "");
  EXPECT_EQ(parse({"--json=f"}).text("json"), "f");
}

TEST(Flags, DoubleDashEndsThem) {
  EXPECT_EQ(parse({"--", "-clear"}).positionals, std::vector<std::string>{"-clear"});
  EXPECT_EQ(parse({"-"}).positionals, std::vector<std::string>{"-"});
}

TEST(Flags, UnknownOneIsRefusedWithTheNearest) {
  EXPECT_NE(refusal({"-clean"}).find("did you mean -clear?"), std::string::npos);
  EXPECT_NE(refusal({"-num_clusters", "6"}).find("did you mean -num_of_clusters?"),
            std::string::npos);
  EXPECT_NE(refusal({"-dont", "show"}).find("did you mean -dont_show (one word)?"),
            std::string::npos);
  EXPECT_EQ(refusal({"-qqqqqqqq"}), "verb: unknown flag -qqqqqqqq");
}

TEST(Flags, WrongValuesAreRefused) {
  EXPECT_EQ(refusal({"-thresh", "abc"}), "-thresh is 'abc', want a number");
  EXPECT_EQ(refusal({"-thresh", "1.5"}), "-thresh is 1.5, want 0 to 1");
  EXPECT_EQ(refusal({"-thresh", "nan"}), "-thresh is nan, want 0 to 1");
  EXPECT_EQ(refusal({"-num_of_clusters", "0"}), "-num_of_clusters is 0, want at least 1");
  EXPECT_EQ(refusal({"-num_of_clusters", "2.5"}), "-num_of_clusters is '2.5', want a whole number");
  EXPECT_EQ(refusal({"-clear=1"}), "-clear takes no value");
}

TEST(Flags, MissingValueAndSecondGivingAreRefused) {
  EXPECT_EQ(refusal({"-out"}), "-out needs a value (FILE)");
  EXPECT_EQ(refusal({"-out", "-clear"}),
            "-out needs a value (FILE); -clear is read as the next flag");
  EXPECT_EQ(refusal({"-clear", "--clear"}), "--clear is given twice");
}

TEST(Flags, UseIsCheckedBySubverb) {
  const Arguments a = parse({"-clear"});
  EXPECT_TRUE(check_use(a, "verb train", "train").empty());
  EXPECT_EQ(check_use(a, "verb map", "map"),
            std::vector<std::string>{"verb map has no use for -clear; it is ignored"});
  EXPECT_THROW(check_use(parse({"-gpus", "0,1"}), "verb train", "train"), Error);
}

TEST(Flags, HelpShowsWhatASubverbUses) {
  const std::string text = flags_help(kFlags, "map");
  EXPECT_EQ(text.find("-clear"), std::string::npos);
  EXPECT_NE(text.find("-thresh P"), std::string::npos);
  EXPECT_NE(text.find("(default 0.25)"), std::string::npos);
  EXPECT_EQ(text.find("-gpus"), std::string::npos);
}

}  // namespace
}  // namespace lantern::cli
