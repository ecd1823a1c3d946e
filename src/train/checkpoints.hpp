#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "exec/model.hpp"
#include "io/training_state.hpp"

namespace lantern::train {

/// Names and rhythm of the weights and state files of a run (reference/training.md 13.6); every
/// file is written atomically and never holds a parameter that is not finite.
class Checkpoints {
 public:
  /// `start` is the iteration the run begins at. Warns (through the log) when the folder already
  /// holds files of another cfg under the same base name.
  Checkpoints(std::filesystem::path folder, std::string base, std::string cfg_file,
              std::int64_t save_weights, std::int64_t save_last, std::int64_t start);

  /// Writes the files that are due after the iteration of `state`.
  void after_iteration(const exec::Model& model, const io::TrainingState& state);
  /// Writes <base>_<suffix>.weights now, and the complete state beside it; returns the path of the
  /// weights.
  std::filesystem::path save(const exec::Model& model, const std::string& suffix,
                             const io::TrainingState& state);
  /// The file that this run wrote last; empty before the first one.
  const std::filesystem::path& newest() const { return newest_; }

 private:
  std::filesystem::path path_of(const std::string& suffix) const;

  std::filesystem::path folder_;
  std::string base_;
  std::int64_t save_weights_, save_last_;
  std::int64_t last_numbered_, last_saved_;
  std::filesystem::path newest_;
};

}  // namespace lantern::train
