#pragma once

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace lantern {

/// Whole file; an Error of kInvalidData "Couldn't open file: x" when it cannot be read or is larger than `limit`.
std::string read_file(const std::filesystem::path& path, Bytes limit = 4_GiB);

/// Writes beside the target, then fsync and rename: after a crash or on a full disk the old file stands untouched.
/// Without commit() the temporary is removed. Every failure is an Error of kResource naming the path.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Path of the temporary, for libraries that write files by name (they must be done before commit()).
  const std::filesystem::path& temporary() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::FILE* file_ = nullptr;
};

void write_file_atomically(const std::filesystem::path& target, std::string_view text);

}  // namespace lantern
