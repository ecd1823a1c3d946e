#include "train/schedule.hpp"

namespace lantern::train {

Schedule schedule_of(const layers::NetSpec& net) {
  Schedule schedule{.policy = net.policy,
                    .learning_rate = net.learning_rate,
                    .learning_rate_min = net.learning_rate_min,
                    .power = net.power,
                    .gamma = net.gamma,
                    .scale = net.scale,
                    .step = net.step,
                    .steps = {net.steps.begin(), net.steps.end()},
                    .scales = {net.scales.begin(), net.scales.end()},
                    .burn_in = net.burn_in,
                    .max_batches = net.max_batches,
                    .sgdr_cycle = net.sgdr_cycle,
                    .sgdr_mult = net.sgdr_mult,
                    .seed = static_cast<std::uint64_t>(net.seed)};
  // Extra scales have no step to take effect at.
  if (schedule.scales.size() > schedule.steps.size()) schedule.scales.resize(schedule.steps.size());
  return schedule;
}

ops::Averaging averaging_at(const layers::NetSpec& net, std::int64_t iteration, bool started) {
  using ops::Averaging;
  if (net.ema_alpha <= 0 || net.max_batches <= 0 || iteration < net.max_batches / 2)
    return Averaging::kOff;
  if (!started) return Averaging::kStart;
  const std::int64_t apply = net.max_batches - 1000;
  if (iteration == apply) return Averaging::kApply;
  return iteration < apply ? Averaging::kFollow : Averaging::kOff;
}

MultiScale multi_scale_of(const layers::Network& network, float random, std::uint64_t seed) {
  const layers::NetSpec& net = network.net;
  MultiScale scale{.net = {net.width, net.height},
                   .random = random,
                   .resize_step = net.resize_step,
                   .max_batches = net.max_batches,
                   .seed = seed};
  check(scale, network.path);
  return scale;
}

}  // namespace lantern::train
