#include "train/run_start.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/model_state.hpp"
#include "io/model_weights.hpp"

namespace lantern::train {

namespace {

// Loads the weights file and finds out where the run begins.
void load_start(exec::Model& model, const RunSetup& setup, const TrainSettings& settings,
                Console& console, io::TrainingState& state) {
  Diagnostics warnings;
  const io::LoadedWeights loaded =
      io::load_weights(model, settings.weights_file, io::Purpose::kTraining, warnings);
  for (const Diagnostics::Entry& entry : warnings.entries())
    log::warning("{}: {}", entry.where, entry.message);
  console.notice(
      fmt::format("Loading weights from {}... seen {}, trained: {} K-images; {} of {} layers "
                  "with weights loaded",
                  settings.weights_file, loaded.header.has_wide_seen() ? 64 : 32,
                  loaded.header.seen / 1000, loaded.layers_loaded, loaded.layers_expected));
  if (settings.clear) return;
  const layers::NetSpec& net = setup.network.net;
  state.iteration =
      static_cast<std::int64_t>(loaded.header.seen / static_cast<std::uint64_t>(net.batch));
  state.last_evaluation = state.iteration;
  if (setup.is_endless() || state.iteration < net.max_batches) return;
  throw Error(ErrorCode::kInvalidData, settings.weights_file,
              "was trained for {} iterations of {} images, which is past max_batches={}: use "
              "-clear to start at "
              "iteration 0 with these weights, or raise max_batches in {}",
              state.iteration, net.batch, net.max_batches, settings.cfg_file);
}

}  // namespace

void start_model(exec::Model& model, const RunSetup& setup, const TrainSettings& settings,
                 Console& console, io::TrainingState& state) {
  model.initialise(setup.seed);
  if (setup.resumed) {
    restore_model(model, *setup.resumed, state);
  } else if (!settings.weights_file.empty()) {
    load_start(model, setup, settings, console, state);
  }
}

void restore_model(exec::Model& model, const SavedState& saved, io::TrainingState& state) {
  io::load_state(model, saved.path, saved.state);
  io::TrainingState restored = saved.state;
  restored.arrays.clear();
  restored.cfg_hash = std::move(state.cfg_hash);
  restored.threads = state.threads;
  state = std::move(restored);
}

}  // namespace lantern::train
