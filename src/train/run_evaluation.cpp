#include "train/run_evaluation.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/error.hpp"
#include "core/log.hpp"

namespace lantern::train {

void RunEvaluation::after_iteration(const exec::Model& model, std::int64_t t, std::uint64_t seen,
                                    Checkpoints& checkpoints, Metrics& metrics) {
  if (setup_.evaluation == nullptr) return;
  TrainingEvaluation& evaluation = *setup_.evaluation;
  const std::int64_t end = setup_.is_endless() ? std::numeric_limits<std::int64_t>::max()
                                               : setup_.network.net.max_batches;
  if (t < evaluation.next_after(last_) && t != end) return;
  last_ = t;
  Measured measured;
  try {
    const std::unique_ptr<exec::Model> forward = memory_.evaluation_model();
    measured = evaluation.measure(*forward, console_);
  } catch (const Error& error) {
    log::warning("no {} at iteration {}, training goes on: {}", evaluation.name(), t, error.what());
    return;
  }
  metrics.add_evaluation(t, measured);
  const double value = measured.percents.front().second;
  if (!best_ || value >= *best_) {
    best_ = value;
    checkpoints.save(model, "best", seen);
  }
  console_.line(evaluation.line(measured, *best_, std::min(evaluation.next_after(t), end)));
}

}  // namespace lantern::train
