#include "train/checkpoints.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "io/model_state.hpp"
#include "io/model_weights.hpp"
#include "train/resume.hpp"

namespace lantern::train {

namespace fs = std::filesystem;

namespace {
io::WeightsHeader header_of(const io::TrainingState& state) {
  return {.seen = static_cast<std::uint64_t>(state.iteration) *
                  static_cast<std::uint64_t>(state.batch)};
}
}  // namespace

Checkpoints::Checkpoints(fs::path folder, std::string base, std::string cfg_file,
                         std::int64_t save_weights, std::int64_t save_last, std::int64_t start)
    : folder_(std::move(folder)),
      base_(std::move(base)),
      save_weights_(save_weights),
      save_last_(save_last),
      last_numbered_(start),
      last_saved_(start) {
  // Darknet cuts the cfg's name at its first dot, so two cfgs can share a base; a note beside the
  // files tells whose they are.
  const std::string name = fs::path(cfg_file).filename().string();
  const fs::path note = folder_ / (base_ + ".cfg-name");
  std::error_code code;
  if (fs::exists(note, code)) {
    const std::string owner = read_file(note, 1_MiB);
    if (owner != name) {
      log::warning(
          "{} holds weights of {} under the name {}_*.weights; this run of {} writes over them",
          folder_.string(), owner, base_, name);
    }
  }
  write_file_atomically(note, name);
}

void Checkpoints::after_iteration(const exec::Model& model, const io::TrainingState& state) {
  const std::int64_t t = state.iteration;
  if (t >= last_numbered_ + save_weights_ || t % save_weights_ == 0) {
    last_numbered_ = t;
    save(model, std::to_string(t), state);
  }
  if (save_weights_ > save_last_ &&
      (t >= last_saved_ + save_last_ || (t % save_last_ == 0 && t > 1))) {
    last_saved_ = t;
    save(model, "last", state);
    if (state.averages) {
      io::save_weights(model, path_of("ema"), header_of(state), io::WhichWeights::kAveraged);
    }
  }
}

fs::path Checkpoints::path_of(const std::string& suffix) const {
  return folder_ / fmt::format("{}_{}.weights", base_, suffix);
}

fs::path Checkpoints::save(const exec::Model& model, const std::string& suffix,
                           const io::TrainingState& state) {
  const fs::path path = path_of(suffix);
  for (std::size_t i = 0; i < model.lowered().parameters.size(); ++i) {
    const layers::ParameterBinding& binding = model.lowered().parameters[i];
    for (const float value : model.view_parameter(i)) {
      if (!std::isfinite(value)) {
        throw Error(ErrorCode::kFailed, path.string(),
                    "not written: {} of layer {} holds a value that is not finite; lower "
                    "learning_rate or lengthen "
                    "burn_in and start again from the last good weights",
                    binding.array, binding.layer);
      }
    }
  }
  // The state first: it holds the weights too, so that a run killed in between has lost nothing.
  io::save_state(model, state_beside(path), state);
  io::save_weights(model, path, header_of(state));
  newest_ = path;
  return path;
}

}  // namespace lantern::train
