#include "io/average.hpp"

#include <utility>

#include "core/error.hpp"

namespace lantern::io {

Weights average_weights(std::span<const std::filesystem::path> files, const WeightsLayout& layout,
                        Diagnostics& warnings) {
  LANTERN_ASSERT(!files.empty(), "a mean needs something to be of");
  std::vector<std::vector<std::vector<double>>> sums(layout.size());
  Weights result;
  for (std::size_t f = 0; f < files.size(); ++f) {
    const auto add = [&](std::size_t i, std::vector<std::vector<float>>& arrays) {
      sums[i].resize(arrays.size());
      for (std::size_t k = 0; k < arrays.size(); ++k) {
        sums[i][k].resize(arrays[k].size());
        for (std::size_t v = 0; v < arrays[k].size(); ++v) sums[i][k][v] += arrays[k][v];
      }
    };
    Weights one = read_weights(files[f], layout, Purpose::kEvaluation, warnings, add);
    if (f == 0) result = std::move(one);
  }
  const auto count = static_cast<double>(files.size());
  result.values.resize(layout.size());
  for (std::size_t i = 0; i < layout.size(); ++i) {
    for (const std::vector<double>& sum : sums[i]) {
      std::vector<float>& mean = result.values[i].emplace_back();
      mean.reserve(sum.size());
      for (const double value : sum) mean.push_back(static_cast<float>(value / count));
    }
  }
  return result;
}

}  // namespace lantern::io
