#pragma once

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace lantern {

/// "a folder", "a device", "a pipe", "a socket"; empty for a file and for nothing.
std::string_view kind_unless_file(const std::filesystem::path& path);

/// Whole file or pipe; an Error of kInvalidData "Couldn't open file: x" when it cannot be read or
/// is larger than `limit`.
std::string read_file(const std::filesystem::path& path, Bytes limit = 4_GiB);

/// Writes beside the target, then fsync and rename: after a crash or on a full disk the old file
/// stands untouched. Without commit() the temporary is removed. A link keeps pointing where it
/// does; pipes, devices and the names of open streams (/dev/stdout) are written as they are. Every
/// failure is an Error of kResource naming the path.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Path of the temporary, for libraries that write files by name (they must be done before
  /// commit()).
  const std::filesystem::path& temporary() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;  ///< as written by the user
  std::filesystem::path final_;   ///< where links lead
  std::filesystem::path temporary_;
  std::FILE* file_ = nullptr;
  bool in_place_ = false;  ///< not a file: nothing can be renamed over it
};

/// Throws what writing there would throw, and changes nothing: for results that come after long
/// work.
void check_writable(const std::filesystem::path& target);
void write_file_atomically(const std::filesystem::path& target, std::string_view text);

}  // namespace lantern
