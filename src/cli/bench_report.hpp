#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "cli/bench_run.hpp"

namespace lantern::cli {

/// A line for each result: size, images, speed, times, memory.
std::string summary_table(std::span<const BenchResult> results);
/// Times by layer, and by op and kernel, the largest first.
std::string layer_tables(const BenchResult& result);
/// What `--json` says of one result.
nlohmann::ordered_json to_json(const BenchResult& result);

}  // namespace lantern::cli
