#pragma once

#include <cstdlib>
#include <filesystem>

namespace lantern::test {

/// Folder of the reference numbers: tests/data/golden, or what the variable LANTERN_GOLDEN names
/// (same format).
inline std::filesystem::path golden_folder() {
  const char* other = std::getenv("LANTERN_GOLDEN");
  return other != nullptr && *other != '\0' ? std::filesystem::path(other)
                                            : std::filesystem::path(LANTERN_TEST_DATA) / "golden";
}

}  // namespace lantern::test
