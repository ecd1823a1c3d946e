#pragma once

#include <cstdint>
#include <optional>

#include "train/checkpoints.hpp"
#include "train/metrics.hpp"
#include "train/run_memory.hpp"
#include "train/run_setup.hpp"

namespace lantern::train {

/// When a run evaluates its network, and what comes of it: a point in the chart, a line, and the
/// weights in _best.
class RunEvaluation {
 public:
  /// `start` is the iteration the run begins at.
  RunEvaluation(const RunSetup& setup, const RunMemory& memory, Console& console,
                std::int64_t start)
      : setup_(setup), memory_(memory), console_(console), last_(start) {}

  /// Evaluates when it is time: at the cfg's own size, over the parameters of `model` and in its
  /// memory. An evaluation that fails is a warning: training goes on.
  void after_iteration(const exec::Model& model, std::int64_t t, std::uint64_t seen,
                       Checkpoints& checkpoints, Metrics& metrics);
  std::optional<double> best() const { return best_; }

 private:
  const RunSetup& setup_;
  const RunMemory& memory_;
  Console& console_;
  std::int64_t last_;
  std::optional<double> best_;
};

}  // namespace lantern::train
