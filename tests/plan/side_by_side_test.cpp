#include "plan/side_by_side.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace lantern::plan {
namespace {

TEST(SideBySide, CallsEachOnce) {
  for (const std::size_t count : {0U, 1U, 2U, 7U, 100U}) {
    std::vector<int> calls(count, 0);
    side_by_side(count, [&](std::size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

// Whatever threads do, the same one is reported, and the others are not left out.
TEST(SideBySide, ThrowsWhatTheLowestThrew) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<int> calls(20, 0);
    const auto work = [&](std::size_t i) {
      ++calls[i];
      if (i == 3 || i == 4 || i == 19) throw std::runtime_error(std::to_string(i));
    };
    try {
      side_by_side(calls.size(), work);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
    EXPECT_EQ(calls, std::vector<int>(20, 1));
  }
}

}  // namespace
}  // namespace lantern::plan
