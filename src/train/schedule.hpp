#pragma once

#include "layers/network.hpp"
#include "ops/kernel.hpp"
#include "train/learning_rate.hpp"
#include "train/multi_scale.hpp"

namespace lantern::train {

/// The learning-rate schedule that the keys of [net] describe.
Schedule schedule_of(const layers::NetSpec& net);
/// What the update of an iteration (1 for the first) does with the averaged weights of ema_alpha;
/// `started`: an earlier one has begun them. From max_batches / 2 on they follow the weights; at
/// max_batches - 1000 the weights become their average, which stands still from then on
/// (reference/training.md section 11).
ops::Averaging averaging_at(const layers::NetSpec& net, std::int64_t iteration, bool started);
/// Multi-scale settings of [net] and the last head's `random`; checked.
MultiScale multi_scale_of(const layers::Network& network, float random, std::uint64_t seed);

}  // namespace lantern::train
