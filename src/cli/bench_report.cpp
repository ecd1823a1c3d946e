#include "cli/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace lantern::cli {

namespace {

// Rows that belong together.
struct Sum {
  OpRow largest;  // of the rows
  int rows = 0;
  double seconds = 0, flops = 0;
};

template <typename Key>
std::vector<Sum> summed(const std::vector<OpRow>& rows, Key key) {
  std::map<std::string, Sum> sums;
  for (const OpRow& row : rows) {
    Sum& sum = sums[key(row)];
    if (sum.rows++ == 0 || row.seconds > sum.largest.seconds) sum.largest = row;
    sum.seconds += row.seconds;
    sum.flops += row.flops;
  }
  std::vector<Sum> list;
  for (auto& [name, sum] : sums) list.push_back(std::move(sum));
  std::ranges::sort(list, [](const Sum& a, const Sum& b) { return a.seconds > b.seconds; });
  return list;
}

double total_seconds(const BenchResult& result) {
  double total = 0;
  for (const OpRow& row : result.ops) total += row.seconds;
  return total;
}

std::string op_and_kernel(const OpRow& row) { return row.op + " [" + row.kernel + "]"; }

// Time, share of the whole, speed where something is computed.
std::string figures(double seconds, double flops, double total) {
  const bool computes = flops > 0 && seconds > 0;
  return fmt::format(
      "{:>10.3f} ms {:>5.1f} % {:>9} {:<7}", 1e3 * seconds, total > 0 ? 100 * seconds / total : 0.0,
      computes ? fmt::format("{:.1f}", flops / seconds * 1e-9) : "", computes ? "GFLOP/s" : "");
}

std::string size_text(const BenchResult& result) {
  return result.width > 0 ? fmt::format("{}x{}", result.width, result.height)
                          : std::string("vector");
}

std::string trimmed_line(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string summary_table(std::span<const BenchResult> results) {
  std::string text =
      fmt::format("{:>11} {:>6} {:>9} {:>11} {:>19} {:>9} {:>12} {:>14}\n", "size", "images", "FPS",
                  "median ms", "quartiles ms", "GFLOP/s", "peak memory", "planned arena");
  for (const BenchResult& result : results) {
    const std::string quartiles =
        fmt::format("{:.2f} - {:.2f}", 1e3 * result.quantile(0.25), 1e3 * result.quantile(0.75));
    text += fmt::format("{:>11} {:>6} {:>9.2f} {:>11.2f} {:>19} {:>9.1f} {:>12} {:>14}\n",
                        size_text(result), result.images, result.images_per_second(),
                        1e3 * result.median(), quartiles, result.gflops(),
                        format_bytes(result.peak), format_bytes(result.planned));
  }
  return text;
}

std::string layer_tables(const BenchResult& result) {
  const double total = total_seconds(result);
  std::string text = fmt::format("\n{}, {} images, by layer\n", size_text(result), result.images);
  for (const Sum& sum :
       summed(result.ops, [](const OpRow& r) { return fmt::format("{:06}", r.layer); })) {
    const OpRow& row = sum.largest;
    const std::string name = row.layer >= 0 ? fmt::format("{:4} {}", row.layer, row.section)
                                            : std::string("   - update");
    const std::string others =
        sum.rows > 1 ? fmt::format(" and {} more", sum.rows - 1) : std::string();
    text +=
        trimmed_line(fmt::format("  {:<22}{} {}{}", name, figures(sum.seconds, sum.flops, total),
                                 op_and_kernel(row), others));
  }
  text += "\nby op and kernel\n";
  for (const Sum& sum : summed(result.ops, op_and_kernel)) {
    text += trimmed_line(fmt::format("  {:<42}{}", op_and_kernel(sum.largest),
                                     figures(sum.seconds, sum.flops, total)));
  }
  return text;
}

nlohmann::ordered_json to_json(const BenchResult& result) {
  nlohmann::ordered_json json{
      {"width", result.width},
      {"height", result.height},
      {"images", result.images},
      {"images_per_second", result.images_per_second()},
      {"gflop_per_second", result.gflops()},
      {"median_seconds", result.median()},
      {"quartile_seconds",
       nlohmann::ordered_json::array({result.quantile(0.25), result.quantile(0.75)})},
      {"seconds", result.seconds},
      {"peak_rss_bytes", result.peak},
      {"planned_bytes", result.planned},
      {"layers", nlohmann::ordered_json::array()}};
  const double total = total_seconds(result);
  for (const OpRow& row : result.ops) {
    json["layers"].push_back({{"layer", row.layer},
                              {"section", row.section},
                              {"op", row.op},
                              {"kernel", row.kernel},
                              {"seconds", row.seconds},
                              {"share", total > 0 ? row.seconds / total : 0.0},
                              {"gflop_per_second", row.gflops()}});
  }
  return json;
}

}  // namespace lantern::cli
