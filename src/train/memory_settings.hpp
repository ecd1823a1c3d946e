#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "layers/specs.hpp"
#include "train/train_settings.hpp"

namespace lantern::train {

/// How much memory a run may take and what it may cost (memory.md, section 6): flags, else [net].
struct MemorySettings {
  static constexpr double kUsualSlowdown = 0.1;  ///< what mini_batch=auto accepts
  static constexpr int kAutoMiniBatch = -1;

  std::optional<Bytes> memory;  ///< of the whole process; empty: auto
  std::string memory_text;      ///< as it was written
  std::filesystem::path disk_folder;
  Bytes disk_memory = 0;
  std::optional<double> max_slowdown;  ///< 0.1 for 10 %
  int mini_batch = 0;                  ///< 0: batch / subdivisions

  /// What the process may take: `memory`, or what there is less a reserve for everybody else.
  Bytes process_bytes() const;
};

/// Errors of kUsage (a flag) and kInvalidConfig (a key, with file and line); one notice for each
/// key of Darknet that is mapped to one of ours.
MemorySettings memory_settings(const layers::NetSpec& net, const TrainSettings& settings,
                               Console& console);

}  // namespace lantern::train
