#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lantern::test {

/// A name that googletest takes, from one with dashes.
inline std::string test_name(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

/// Names tests by the `name` of their parameter.
inline constexpr auto kByName = [](const auto& info) { return test_name(info.param.name); };

}  // namespace lantern::test
