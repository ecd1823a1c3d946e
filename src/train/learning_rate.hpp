#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/specs.hpp"

namespace lantern::train {

using layers::Policy;

/// The keys of [net] that set the learning rate, with the reference's defaults
/// (reference/training.md 8).
struct Schedule {
  Policy policy = Policy::kConstant;
  double learning_rate = 0.001;
  double learning_rate_min = 1e-5;  ///< sgdr, cosine
  double power = 4;                 ///< poly, random and every burn-in
  double gamma = 1;                 ///< exp, sigmoid
  double scale = 1;                 ///< step
  std::int64_t step = 1;            ///< step, sigmoid
  std::vector<std::int64_t> steps;  ///< steps
  std::vector<double> scales;
  std::int64_t burn_in = 0;
  std::int64_t max_batches = 0;
  std::int64_t sgdr_cycle = 0;  ///< 0: max_batches
  std::int64_t sgdr_mult = 2;
  std::uint64_t seed = 0;  ///< random: its draw is addressed by (seed, batch number)
};

/// Throws an Error (kInvalidConfig, at `where`) for a schedule whose rate is not defined: lists of
/// unequal length or empty, steps that do not rise, a step or cycle below 1, poly or cosine without
/// max_batches, a negative rate.
void check(const Schedule& schedule, const std::string& where);

/// Rate of the update with this batch number (1 is the first update). Pure and defined for every
/// schedule; what `check` refuses gives the constant rate.
double learning_rate(const Schedule& schedule, std::int64_t batch_number);

}  // namespace lantern::train
