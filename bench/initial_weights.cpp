// Writes random weights for a network, as the reference has them at the start of a training, for
// programs that want a file to run the same network.
//
//   bench_initial_weights NET.cfg NET.weights

#include <fmt/format.h>

#include <vector>

#include "core/error.hpp"
#include "exec/model.hpp"
#include "io/model_weights.hpp"

int main(int count, char** arguments) {
  using namespace lantern;
  if (count != 3) {
    fmt::print(stderr, "usage: bench_initial_weights NET.cfg NET.weights\n");
    return 2;
  }
  try {
    constexpr std::uint64_t kSeed = 1;
    exec::Model model(layers::load_network_file(arguments[1]), {.forward_batch = 1});
    model.initialise(kSeed);
    // The reference starts with variances of 0, and a network that nothing has trained would
    // divide by them.
    for (std::size_t i = 0; i < model.lowered().parameters.size(); ++i) {
      const layers::ParameterBinding& binding = model.lowered().parameters[i];
      if (!binding.array.ends_with("rolling_variance")) continue;
      const Shape& shape = model.lowered().graph.type(binding.tensor).shape;
      model.set_parameter(i, std::vector<float>(static_cast<std::size_t>(shape.elements()), 1.0F));
    }
    io::save_weights(model, arguments[2], {});
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
