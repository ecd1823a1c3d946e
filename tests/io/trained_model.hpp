#pragma once

#include <string>
#include <vector>

#include "core/rng.hpp"
#include "exec/model.hpp"

namespace lantern::io {

/// Initial weights; batch norms and biases as a training may leave them: means and biases within
/// +-`reach`, scales and variances 0.5 to 2.
inline void fill_as_trained(exec::Model& model, std::uint64_t seed, Rng rng, float reach) {
  model.initialise(seed);
  const layers::Lowered& lowered = model.lowered();
  for (std::size_t i = 0; i < lowered.parameters.size(); ++i) {
    const std::string& array = lowered.parameters[i].array;
    if (layers::is_weights(array)) continue;
    const bool is_mean = array.ends_with("rolling_mean") || array.ends_with("biases");
    std::vector<float> values(static_cast<std::size_t>(
        lowered.graph.type(lowered.parameters[i].tensor).shape.elements()));
    for (float& value : values)
      value = is_mean ? rng.uniform(-reach, reach) : rng.uniform(0.5F, 2.0F);
    model.set_parameter(i, values);
  }
}

}  // namespace lantern::io
