#include "core/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.hpp"

namespace lantern {

std::string read_file(const std::filesystem::path& path, Bytes limit) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    throw Error(ErrorCode::kInvalidData, path.string(), "is a folder, a file is needed");
  }
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    throw Error(ErrorCode::kInvalidData, "", "Couldn't open file: {} ({})", path.string(), std::strerror(errno));
  }
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file)) {
    text.append(buffer, count);
    if (static_cast<Bytes>(text.size()) > limit) break;
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) throw Error(ErrorCode::kInvalidData, path.string(), "cannot be read to its end");
  if (static_cast<Bytes>(text.size()) > limit) {
    throw Error(ErrorCode::kInvalidData, path.string(), "is larger than {}", format_bytes(limit));
  }
  return text;
}

AtomicFile::AtomicFile(std::filesystem::path target)
    : target_(std::move(target)), temporary_(target_.string() + ".tmp" + std::to_string(getpid())) {
  file_ = std::fopen(temporary_.c_str(), "wb");
  if (file_ == nullptr) {
    throw Error(ErrorCode::kResource, target_.string(), "cannot be written: {}", std::strerror(errno));
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) {
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    throw Error(ErrorCode::kResource, target_.string(), "cannot be written: {}; the file there before is untouched",
                std::strerror(errno));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  const bool flushed = std::fflush(file_) == 0 && fsync(fileno(file_)) == 0;
  const int flush_error = errno;
  if (!flushed) {
    throw Error(ErrorCode::kResource, target_.string(), "cannot be written: {}; the file there before is untouched",
                std::strerror(flush_error));
  }
  std::fclose(file_);
  file_ = nullptr;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int rename_error = errno;
    std::remove(temporary_.c_str());
    throw Error(ErrorCode::kResource, target_.string(), "cannot be written: {}", std::strerror(rename_error));
  }
  // The rename itself must survive a power cut: sync the folder. A file system that cannot is no error.
  const std::filesystem::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  if (const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY); descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

void write_file_atomically(const std::filesystem::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

}  // namespace lantern
