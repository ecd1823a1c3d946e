#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "train/evaluate.hpp"

namespace lantern::cli {

/// Makes the folder of `detector map -report`, and throws before the work when it cannot be
/// written.
void prepare_map_files(const std::filesystem::path& folder);

/// map.txt, map.json with curves, pr_curves and f1_curves as SVG and PNG; with a confusion matrix
/// also confusion.csv, confusion.svg and confusion.png.
void write_map_files(const std::filesystem::path& folder, const train::EvaluateResult& result,
                     std::span<const std::string> names);

}  // namespace lantern::cli
