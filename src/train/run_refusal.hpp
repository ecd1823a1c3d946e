#pragma once

#include <functional>

#include "exec/model.hpp"
#include "train/memory_settings.hpp"

namespace lantern::train {

/// How much slower a program is than with unlimited memory, by prediction; 0.1 for 10 %.
double slowdown_of(const plan::Program& program);

/// A plan that cannot be used, and what is needed to say what can.
struct UnusablePlan {
  const layers::Network& network;
  const exec::ModelOptions& options;
  const exec::Compiled& compiled;
  bool fits = false;  ///< it does, but is slower than max_slowdown allows
  Bytes beside = 0;   ///< what the process holds besides the arena
  Bytes budget = 0;   ///< of the arena
  const MemorySettings& settings;
  std::function<void(exec::Compiled&)> costs;
};

/// Throws kResource, in one line: the smallest budget that works, the largest mini-batch that fits
/// this one, and what else would do, with its predicted cost.
[[noreturn]] void refuse_plan(const UnusablePlan& plan);

}  // namespace lantern::train
