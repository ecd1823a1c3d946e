#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "core/text.hpp"
#include "golden_folder.hpp"

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
  // The reference numbers may come from another folder.
  constexpr std::string_view kGolden = "golden/";
  if (name.starts_with(kGolden)) return test::golden_folder() / name.substr(kGolden.size());
  return std::filesystem::path(LANTERN_TEST_DATA) / name;
}

}  // namespace lantern::eval
