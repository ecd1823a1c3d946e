#pragma once

#include "exec/model.hpp"
#include "io/training_state.hpp"
#include "train/run_setup.hpp"
#include "train/train_settings.hpp"

namespace lantern::train {

/// Fills the model a run begins with: random weights, those of a weights file over them, or
/// everything that an earlier run left; and what `state` counts.
void start_model(exec::Model& model, const RunSetup& setup, const TrainSettings& settings,
                 Console& console, io::TrainingState& state);

/// Puts model and counters back to a saved state. Cfg and compute threads of `state` stay: they are
/// those of this run.
void restore_model(exec::Model& model, const SavedState& saved, io::TrainingState& state);

}  // namespace lantern::train
