#pragma once

#include "train/checkpoints.hpp"
#include "train/metrics.hpp"
#include "train/run_memory.hpp"
#include "train/run_setup.hpp"

namespace lantern::train {

/// When a run evaluates its network, and what comes of it: a point in the chart, a line, and the
/// weights in _best.
class RunEvaluation {
 public:
  RunEvaluation(const RunSetup& setup, const RunMemory& memory, Console& console)
      : setup_(setup), memory_(memory), console_(console) {}

  /// Evaluates when it is time: at the cfg's own size, over the parameters of `model` and in its
  /// memory; keeps in `state` when that was, and the best. An evaluation that fails is a warning:
  /// training goes on.
  void after_iteration(const exec::Model& model, io::TrainingState& state, Checkpoints& checkpoints,
                       Metrics& metrics);

 private:
  const RunSetup& setup_;
  const RunMemory& memory_;
  Console& console_;
};

}  // namespace lantern::train
