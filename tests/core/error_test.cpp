// Errors, exit codes and collected diagnostics.

#include "core/error.hpp"

#include <gtest/gtest.h>

#include "core/diagnostics.hpp"

namespace lantern {
namespace {

TEST(Error, ExitCodesAreThoseOfTheCommandLine) {
  EXPECT_EQ(exit_code(ErrorCode::kUsage), 2);
  EXPECT_EQ(exit_code(ErrorCode::kInvalidConfig), 3);
  EXPECT_EQ(exit_code(ErrorCode::kInvalidData), 3);
  EXPECT_EQ(exit_code(ErrorCode::kResource), 4);
  EXPECT_EQ(exit_code(ErrorCode::kDevice), 4);
  EXPECT_EQ(exit_code(ErrorCode::kFailed), 1);
  EXPECT_EQ(exit_code(ErrorCode::kInternal), 1);
  EXPECT_EQ(exit_code(ErrorCode::kInterrupted), 130);
}

TEST(Error, SaysWhereBeforeWhat) {
  const Error error(ErrorCode::kInvalidConfig, "net.cfg:112:1", "size is {}, want >= {}", 0, 1);
  EXPECT_STREQ(error.what(), "net.cfg:112:1: size is 0, want >= 1");
  EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
  EXPECT_EQ(error.where(), "net.cfg:112:1");
  EXPECT_EQ(error.message(), "size is 0, want >= 1");
  EXPECT_STREQ(Error(ErrorCode::kUsage, "", "no verb").what(), "no verb");
}

TEST(Error, TextOfTheUserIsNoFormat) {
  EXPECT_STREQ(Error(ErrorCode::kInvalidData, "{}", "unknown name '{}'", "{0}{:x}%s").what(),
               "{}: unknown name '{0}{:x}%s'");
}

TEST(Error, AFailedAssertionNamesItsPlaceAndCondition) {
  EXPECT_NO_THROW(LANTERN_ASSERT(1 + 1 == 2, "arithmetic holds"));
  try {
    LANTERN_ASSERT(1 + 1 == 3, "sums are right");
    FAIL() << "an assertion that does not hold throws";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_NE(error.where().find("error_test.cpp:"), std::string::npos);
    EXPECT_NE(error.message().find("1 + 1 == 3"), std::string::npos);
    EXPECT_NE(error.message().find("sums are right"), std::string::npos);
  }
}

TEST(Diagnostics, WarningsAloneThrowNothing) {
  Diagnostics diagnostics;
  EXPECT_NO_THROW(diagnostics.throw_if_errors(ErrorCode::kInvalidConfig));
  diagnostics.warning("net.cfg:3:1", "has no key '{}'", "siz");
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_NO_THROW(diagnostics.throw_if_errors(ErrorCode::kInvalidConfig));
  ASSERT_EQ(diagnostics.entries().size(), 1U);
  EXPECT_EQ(diagnostics.entries()[0].to_string(), "net.cfg:3:1: warning: has no key 'siz'");
}

TEST(Diagnostics, EveryErrorIsInTheOneThatIsThrown) {
  Diagnostics diagnostics;
  diagnostics.warning("net.cfg:1:1", "odd");
  diagnostics.error("net.cfg:112:1", "[maxpool] size is {}, want >= 1", 0);
  diagnostics.error("", "no [net] section");
  diagnostics.error("net.cfg:9:2", "{} of {}", "{", "}");
  EXPECT_TRUE(diagnostics.has_errors());
  try {
    diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
    FAIL() << "errors are thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_EQ(error.where(), "net.cfg:112:1");
    EXPECT_STREQ(error.what(),
                 "net.cfg:112:1: error: [maxpool] size is 0, want >= 1\n"
                 "error: no [net] section\n"
                 "net.cfg:9:2: error: { of }");
  }
}

TEST(Error, BinaryNamesStayWhole) {
  const Error error(ErrorCode::kInvalidData, std::string("a\0b", 3), "is missing");
  EXPECT_STREQ(error.what(), "a?b: is missing") << "what() ends at a zero";
}

}  // namespace
}  // namespace lantern
