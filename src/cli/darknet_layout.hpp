#pragma once

#include <optional>

#include "core/types.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

/// What Darknet allocates to train a network, as its sources do it: layer outputs and what they are
/// kept with, weights and their updates. Without the convolution workspace, the input and what a
/// driver takes, so a run needs more.
struct DarknetLayout {
  Bytes per_image = 0;   ///< bytes of all layers for one image of a mini-batch
  Bytes parameters = 0;  ///< weights and updates
  Bytes bytes(std::int64_t mini_batch) const { return parameters + mini_batch * per_image; }
};

/// Nothing for a network with a layer whose bytes are not known here (recurrent ones and rare
/// ones). `gpu`: the build with cuDNN, else the one for the CPU.
std::optional<DarknetLayout> darknet_layout(const layers::Network& network, bool gpu);

}  // namespace lantern::cli
