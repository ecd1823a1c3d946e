#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "exec/model.hpp"

namespace lantern::train {

/// Names and rhythm of the weights files of a run (reference/training.md 13.6); every file is
/// written atomically and never holds a value that is not finite.
class Checkpoints {
 public:
  /// `start` is the iteration the run begins at. Warns (through the log) when the folder already
  /// holds files of another cfg under the same base name.
  Checkpoints(std::filesystem::path folder, std::string base, std::string cfg_file,
              std::int64_t save_weights, std::int64_t save_last, std::int64_t start);

  /// Writes the files that are due after iteration t.
  void after_iteration(const exec::Model& model, std::int64_t t, std::uint64_t seen);
  /// Writes <base>_<suffix>.weights now; returns its path.
  std::filesystem::path save(const exec::Model& model, const std::string& suffix,
                             std::uint64_t seen);
  /// The file that this run wrote last; empty before the first one.
  const std::filesystem::path& newest() const { return newest_; }

 private:
  std::filesystem::path folder_;
  std::string base_;
  std::int64_t save_weights_, save_last_;
  std::int64_t last_numbered_, last_saved_;
  std::filesystem::path newest_;
};

}  // namespace lantern::train
