#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "core/text.hpp"

namespace lantern::eval {

/// Rows of a comma-separated file without its header line.
inline std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& path) {
  std::vector<std::vector<std::string>> rows;
  const std::string text = read_file(path);
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string_view field : split(trim(line), ',')) row.emplace_back(field);
  }
  rows.erase(rows.begin());
  return rows;
}

inline std::filesystem::path test_data(const std::string& name) {
  return std::filesystem::path(LANTERN_TEST_DATA) / name;
}

}  // namespace lantern::eval
