#pragma once

#include <filesystem>

#include "exec/model.hpp"
#include "io/weights.hpp"

namespace lantern::io {

/// What a `.weights` file of this network holds, in file order.
WeightsLayout weights_layout(const layers::Network& network);

struct LoadedWeights {
  WeightsHeader header;
  int layers_loaded = 0;
  int layers_expected = 0;
};

/// Reads a file into the model's parameters; layers that the file does not reach keep their values,
/// but for evaluation scales that it does not have are 1.
LoadedWeights load_weights(exec::Model& model, const std::filesystem::path& path, Purpose purpose,
                           Diagnostics& warnings);
enum class WhichWeights : std::uint8_t {
  kTrained,
  kAveraged,  ///< where there is an average of them (ema_alpha)
};
/// Writes the model's parameters, atomically.
void save_weights(const exec::Model& model, const std::filesystem::path& path,
                  const WeightsHeader& header, WhichWeights which = WhichWeights::kTrained);

}  // namespace lantern::io
