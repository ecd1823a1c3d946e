#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "eval/detection.hpp"

namespace lantern::cli {

/// Label files of `-save_labels`. Only files that this program wrote, and that nobody changed
/// since, are overwritten: a side file `.lantern_labels` in each folder lists them with a hash of
/// their text.
class SavedLabels {
 public:
  /// `folder` empty: beside the label path of the image. `force`: overwrite any file.
  SavedLabels(std::filesystem::path folder, bool force);

  /// One line for each detection with a class above the threshold: its best class and box. Throws
  /// kResource when the file may not or cannot be written, kInvalidData when it is another image's.
  void write(const std::string& image, const eval::DetectionList& detections, float threshold);
  /// Writes the side files.
  void finish();

 private:
  using Hashes = std::map<std::string, std::string>;  ///< file name to hash
  Hashes& hashes_of(const std::filesystem::path& folder);
  std::filesystem::path folder_;
  bool force_;
  std::map<std::filesystem::path, Hashes> folders_;
  std::map<std::filesystem::path, std::string> written_;  ///< label file to its image
};

}  // namespace lantern::cli
