#include "core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.hpp"

namespace lantern {

namespace {

// What stands at a path, links followed.
std::filesystem::file_type type_of(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::status(path, code).type();
}

// Names of open streams: what is renamed over their file never reaches whoever reads them.
bool names_a_stream(const std::string& path) {
  return path.starts_with("/dev/std") || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

std::filesystem::path temporary_beside(const std::filesystem::path& target) {
  constexpr std::size_t kLongestName = 255;  // of a file, in bytes
  const std::string ending = ".tmp" + std::to_string(getpid());
  const std::string name = target.filename().string();
  if (name.size() + ending.size() <= kLongestName) return target.string() + ending;
  return target.parent_path() / (name.substr(0, kLongestName / 2) + ending);
}

}  // namespace

std::string_view kind_unless_file(const std::filesystem::path& path) {
  switch (type_of(path)) {
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::character:
    case std::filesystem::file_type::block:
      return "a device";
    case std::filesystem::file_type::fifo:
      return "a pipe";
    case std::filesystem::file_type::socket:
      return "a socket";
    default:
      return {};
  }
}

std::string read_file(const std::filesystem::path& path, Bytes limit) {
  // A pipe may be read: shells make one for <(command).
  if (const std::string_view kind = kind_unless_file(path); !kind.empty() && kind != "a pipe") {
    throw Error(ErrorCode::kInvalidData, path.string(), "is {}, a file is needed", kind);
  }
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    throw Error(ErrorCode::kInvalidData, "", "Couldn't open file: {} ({})", path.string(),
                std::strerror(errno));
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

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  using std::filesystem::file_type;
  const file_type type = type_of(target_);
  if (type == file_type::directory) {
    throw Error(ErrorCode::kResource, target_.string(), "cannot be written: it is a folder");
  }
  in_place_ =
      names_a_stream(target_.string()) ||
      (type != file_type::regular && type != file_type::not_found && type != file_type::none);
  if (in_place_) {
    temporary_ = target_;
    file_ = std::fopen(temporary_.c_str(), "ab");
  } else {
    // The file that a link shows is replaced, not the link.
    std::error_code code;
    final_ = type == file_type::regular ? std::filesystem::canonical(target_, code) : target_;
    if (code || final_.empty()) final_ = target_;
    temporary_ = temporary_beside(final_);
    file_ = std::fopen(temporary_.c_str(), "wb");
  }
  if (file_ == nullptr) {
    throw Error(ErrorCode::kResource, target_.string(), "cannot be written: {}",
                std::strerror(errno));
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) {
    std::fclose(file_);
    if (!in_place_) std::remove(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    throw Error(ErrorCode::kResource, target_.string(),
                "cannot be written: {}; the file there before is untouched", std::strerror(errno));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  const bool flushed = std::fflush(file_) == 0 && (in_place_ || fsync(fileno(file_)) == 0);
  const int flush_error = errno;
  if (!flushed) {
    throw Error(ErrorCode::kResource, target_.string(),
                "cannot be written: {}; the file there before is untouched",
                std::strerror(flush_error));
  }
  std::fclose(file_);
  file_ = nullptr;
  if (in_place_) return;
  struct stat before {};
  if (stat(final_.c_str(), &before) == 0) {  // who may read it stays as it was
    static_cast<void>(chmod(temporary_.c_str(), before.st_mode & 07777));
  }
  if (std::rename(temporary_.c_str(), final_.c_str()) != 0) {
    const int rename_error = errno;
    std::remove(temporary_.c_str());
    throw Error(ErrorCode::kResource, target_.string(), "cannot be written: {}",
                std::strerror(rename_error));
  }
  // The rename itself must survive a power cut: sync the folder. A file system that cannot is no
  // error.
  const std::filesystem::path folder = final_.has_parent_path() ? final_.parent_path() : ".";
  if (const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY); descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

void check_writable(const std::filesystem::path& target) {
  const std::string_view kind = kind_unless_file(target);
  if (kind.empty() || kind == "a folder") AtomicFile probe(target);  // a pipe's reader would end
}

void write_file_atomically(const std::filesystem::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

}  // namespace lantern
