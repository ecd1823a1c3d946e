#pragma once

#include "layers/network.hpp"
#include "train/learning_rate.hpp"

namespace lantern::train {

/// The learning-rate schedule that the keys of [net] describe.
Schedule schedule_of(const layers::NetSpec& net);

}  // namespace lantern::train
