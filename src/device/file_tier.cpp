#include "device/file_tier.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace lantern::device {

namespace {

// Retries of a request that the system did not take or that moved nothing, before it is an error.
constexpr int kRetries = 1000;

Bytes free_bytes(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return 0;
  return static_cast<Bytes>(info.f_bavail) * static_cast<Bytes>(info.f_frsize);
}

// A file that no folder lists.
int open_nameless(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string name = (folder / ".lantern-XXXXXX").string();
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

void refuse_file(const std::filesystem::path& folder, Bytes asked, Bytes free, int error) {
  throw Error(ErrorCode::kResource, folder.string(),
              "no room for the {} that the plan moves to disk, {} are free ({}): ask for less disk "
              "memory, name another folder or take a smaller mini-batch",
              format_bytes(asked), format_bytes(free), std::strerror(error));
}

struct FileTier::Lane {
  Lane(bool writes_, Pace pace_) : writes(writes_), pace(pace_) {}
  ~Lane() {
    if (has_ring) io_uring_queue_exit(&ring);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  bool writes;
  Pace pace;
  io_uring ring{};
  bool has_ring = false;
  FileFaults faults;
  std::int64_t pieces = 0;  // begun so far
};

FileTier::FileTier(const FileTierOptions& options)
    : folder_(options.folder), bytes_(round_up(options.bytes, kBlock)) {
  file_ = open_nameless(folder_);
  if (file_ < 0) {
    throw Error(ErrorCode::kResource, folder_.string(),
                "no file for evicted tensors can be made here: {}", std::strerror(errno));
  }
  try {
    // Asked first: where the system has no such call the library would fill the disk up to the end.
    if (const Bytes free = free_bytes(folder_); bytes_ > free)
      refuse_file(folder_, bytes_, free, ENOSPC);
    if (const int error = bytes_ > 0 ? posix_fallocate(file_, 0, bytes_) : 0; error != 0)
      refuse_file(folder_, bytes_, free_bytes(folder_), error);
  } catch (...) {
    close(file_);
    throw;
  }
  const int flags = fcntl(file_, F_GETFL);
  direct_ = flags >= 0 && fcntl(file_, F_SETFL, flags | O_DIRECT) == 0;
  if (!direct_) {
    log::info("{}: no direct I/O on this file system; copies go through the page cache",
              folder_.string());
  }
  out_ = std::make_unique<Lane>(true, Pace::out(options.link));
  in_ = std::make_unique<Lane>(false, Pace::in(options.link));
  out_->faults = options.faults;
  for (Lane* lane : {out_.get(), in_.get()}) {
    if (!options.io_uring) continue;
    const int error = io_uring_queue_init(kDepth, &lane->ring, 0);
    lane->has_ring = error == 0;
    if (error != 0) log::debug("io_uring is not to be had: {}", std::strerror(-error));
  }
}

FileTier::~FileTier() {
  out_.reset();
  in_.reset();
  if (file_ >= 0) close(file_);
}

std::string FileTier::name() const { return "the file in " + folder_.string(); }

bool FileTier::uses_io_uring() const { return out_->has_ring && in_->has_ring; }

void FileTier::sync() {
  fdatasync(file_);
  posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
}

namespace {

// One copy, up to kDepth pieces of it under way.
class Transfer {
 public:
  struct Part {
    Bytes at = 0, end = 0;
    bool fails = false, halved = false;
  };

  Transfer(int file, Bytes offset, std::byte* data, Bytes bytes, bool writes)
      : file_(file), offset_(offset), data_(data), bytes_(bytes), writes_(writes) {}

  bool more() const { return next_ < bytes_ && error_ == 0; }
  Bytes next() const { return next_; }
  int error() const { return error_; }
  Bytes error_offset() const { return offset_ + error_at_; }
  Bytes moved() const { return moved_; }

  Part take(std::int64_t piece, const FileFaults& faults) {
    Part part{.at = next_, .end = std::min(next_ + FileTier::kPiece, bytes_)};
    part.fails = piece == faults.error_piece;
    part.halved = piece == faults.short_piece;
    next_ = part.end;
    return part;
  }
  // How much of a part to ask for.
  Bytes asked(Part& part) const {
    const Bytes all = part.end - part.at;
    return std::exchange(part.halved, false)
               ? std::max(all / 2 / FileTier::kBlock, Bytes{1}) * FileTier::kBlock
               : all;
  }
  // What the system said (bytes, or minus an errno); true when the part is over.
  bool take_result(Part& part, Bytes result, const FileFaults& faults, CopyControl& control) {
    if (part.fails) result = -faults.error;
    if (result == -EINTR || result == -EAGAIN || (result >= 0 && result < FileTier::kBlock)) {
      if (++retries_ < kRetries && error_ == 0) return false;
      result = result < 0 ? result : -EIO;  // nothing moves any more
    }
    if (result < 0) {
      if (error_ == 0) {
        error_ = static_cast<int>(-result);
        error_at_ = part.at;
      }
      return true;
    }
    const Bytes whole = result / FileTier::kBlock * FileTier::kBlock;  // direct I/O takes no others
    part.at += whole;
    moved_ += whole;
    control.moved(whole);
    return part.at == part.end || error_ != 0;
  }
  void fail(int error) {
    if (error_ == 0) error_ = error;
  }

  Bytes call(Part& part) const {
    const auto size = static_cast<std::size_t>(asked(part));
    const ssize_t result = writes_ ? pwrite(file_, data_ + part.at, size, offset_ + part.at)
                                   : pread(file_, data_ + part.at, size, offset_ + part.at);
    return result < 0 ? -errno : result;
  }
  void queue(io_uring& ring, unsigned slot, Part& part) const {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);  // there are as many as parts
    const auto size = static_cast<unsigned>(asked(part));
    const auto at = static_cast<std::uint64_t>(offset_ + part.at);
    if (writes_) {
      io_uring_prep_write(entry, file_, data_ + part.at, size, at);
    } else {
      io_uring_prep_read(entry, file_, data_ + part.at, size, at);
    }
    io_uring_sqe_set_data64(entry, slot);
  }

 private:
  int file_;
  Bytes offset_;
  std::byte* data_;
  Bytes bytes_;
  bool writes_;
  Bytes next_ = 0, moved_ = 0, error_at_ = 0;
  int error_ = 0, retries_ = 0;
};

}  // namespace

void FileTier::transfer(Lane& lane, Bytes offset, std::byte* data, Bytes bytes,
                        CopyControl& control) {
  LANTERN_ASSERT(offset >= 0 && offset + bytes <= bytes_, "copies stay inside the tier");
  LANTERN_ASSERT(offset % kBlock == 0 && bytes % kBlock == 0 &&
                     reinterpret_cast<std::uintptr_t>(data) % kBlock == 0,
                 "copies of a file tier are aligned");
  lane.pace.begin();
  Transfer copy(file_, offset, data, bytes, lane.writes);
  if (!lane.has_ring) {
    while (copy.more()) {
      control.check();
      Transfer::Part part = copy.take(++lane.pieces, lane.faults);
      while (!copy.take_result(part, copy.call(part), lane.faults, control)) {
      }
      lane.pace.wait(copy.moved(), copy.moved() == bytes, control);
    }
  } else {
    std::array<Transfer::Part, kDepth> parts;
    std::array<unsigned, kDepth> idle;
    for (unsigned slot = 0; slot < kDepth; ++slot) idle[slot] = slot;
    unsigned idle_count = kDepth;
    for (;;) {
      while (copy.more() && idle_count > 0 && !control.cancelled()) {
        const unsigned slot = idle[--idle_count];
        parts[slot] = copy.take(++lane.pieces, lane.faults);
        copy.queue(lane.ring, slot, parts[slot]);
      }
      if (idle_count == kDepth) break;  // whatever happened, nothing is under way when this is left
      const int submitted = io_uring_submit_and_wait(&lane.ring, 1);
      if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) {
        copy.fail(-submitted);
        break;
      }
      io_uring_cqe* entry = nullptr;
      while (io_uring_peek_cqe(&lane.ring, &entry) == 0) {
        const auto slot = static_cast<unsigned>(io_uring_cqe_get_data64(entry));
        const Bytes result = entry->res;
        io_uring_cqe_seen(&lane.ring, entry);
        if (copy.take_result(parts[slot], result, lane.faults, control)) {
          idle[idle_count++] = slot;
        } else {
          copy.queue(lane.ring, slot, parts[slot]);
        }
      }
      lane.pace.wait(copy.moved(), copy.moved() == bytes, control);
    }
  }
  if (copy.error() != 0) {
    throw Error(ErrorCode::kResource, folder_.string(),
                "cannot {} the file of evicted tensors at byte {}: {}",
                lane.writes ? "write" : "read", copy.error_offset(), std::strerror(copy.error()));
  }
  control.check();
}

void FileTier::write(Bytes offset, std::span<const std::byte> from, CopyControl& control) {
  // The interface of the system's calls is one for both directions.
  transfer(*out_, offset, const_cast<std::byte*>(from.data()), static_cast<Bytes>(from.size()),
           control);
}

void FileTier::read(Bytes offset, std::span<std::byte> to, CopyControl& control) {
  transfer(*in_, offset, to.data(), static_cast<Bytes>(to.size()), control);
}

}  // namespace lantern::device
