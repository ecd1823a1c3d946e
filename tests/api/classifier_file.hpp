#pragma once

#include <filesystem>

namespace lantern::test {

/// Writes a small classifier (5 classes, input 24 x 16) with made-up weights as net.cfg and
/// net.weights.
void write_classifier(const std::filesystem::path& folder);

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lantern::test
