#include "train/run_evaluation.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/error.hpp"
#include "core/log.hpp"

namespace lantern::train {

void RunEvaluation::after_iteration(const exec::Model& model, io::TrainingState& state,
                                    Checkpoints& checkpoints, Metrics& metrics) {
  if (setup_.evaluation == nullptr) return;
  TrainingEvaluation& evaluation = *setup_.evaluation;
  const std::int64_t end = setup_.is_endless() ? std::numeric_limits<std::int64_t>::max()
                                               : setup_.network.net.max_batches;
  const std::int64_t t = state.iteration;
  if (t < evaluation.next_after(state.last_evaluation) && t != end) return;
  state.last_evaluation = t;
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
  if (!state.best || value >= *state.best) {
    state.best = value;
    checkpoints.save(model, "best", state);
  }
  console_.line(evaluation.line(measured, *state.best, std::min(evaluation.next_after(t), end)));
}

}  // namespace lantern::train
