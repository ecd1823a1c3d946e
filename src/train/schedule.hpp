#pragma once

#include "layers/network.hpp"
#include "train/learning_rate.hpp"
#include "train/multi_scale.hpp"

namespace lantern::train {

/// The learning-rate schedule that the keys of [net] describe.
Schedule schedule_of(const layers::NetSpec& net);
/// Multi-scale settings of [net] and the last head's `random`; checked.
MultiScale multi_scale_of(const layers::Network& network, float random, std::uint64_t seed);

}  // namespace lantern::train
