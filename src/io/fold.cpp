#include "io/fold.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "ops/batch_norm/batch_norm.hpp"

namespace lantern::io {

void fold_batch_norm(const WeightsLayer& layer, std::vector<std::vector<float>>& values,
                     std::string_view part) {
  const auto place = [&](std::string_view name) {
    const auto found =
        std::ranges::find(layer.arrays, std::string(part).append(name), &WeightsArray::name);
    LANTERN_ASSERT(found != layer.arrays.end(), "a normalised layer has all five arrays");
    return static_cast<std::size_t>(found - layer.arrays.begin());
  };
  std::vector<float>& biases = values[place(kBiases)];
  std::vector<float>& weights = values[place(kWeights)];
  const std::vector<float>& scales = values[place(kScales)];
  const std::vector<float>& means = values[place(kRollingMean)];
  const std::vector<float>& variances = values[place(kRollingVariance)];
  if (weights.empty()) return;  // dontload
  const std::size_t filters = biases.size();
  const std::size_t inputs = weights.size() / filters;
  for (std::size_t f = 0; f < filters; ++f) {
    const double scale = scales.empty() ? 1.0 : scales[f];
    const double mean = means.empty() ? 0.0 : means[f];
    const double variance = variances.empty() ? 0.0 : variances[f];
    const double factor = scale / std::sqrt(variance + double{ops::kBatchNormEpsilon});
    for (std::size_t i = 0; i < inputs; ++i) {
      float& weight = weights[f * inputs + i];
      weight = static_cast<float>(weight * factor);
    }
    biases[f] = static_cast<float>(biases[f] - mean * factor);
  }
}

}  // namespace lantern::io
