#pragma once

#include <filesystem>

#include "exec/model.hpp"
#include "io/training_state.hpp"

namespace lantern::io {

/// Writes what the model keeps between iterations (parameters, momentum, statistics, averages,
/// states of recurrent layers) with `state`, whose arrays are filled in.
void save_state(const exec::Model& model, const std::filesystem::path& path, TrainingState state);

/// Puts the arrays of a file that read_state() has accepted into a training model. Throws
/// kInvalidData, naming the first difference, when it is the state of another network.
void load_state(exec::Model& model, const std::filesystem::path& path, const TrainingState& state);

}  // namespace lantern::io
