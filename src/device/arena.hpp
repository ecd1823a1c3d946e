#pragma once

#include <cstddef>
#include <utility>

#include "core/types.hpp"

namespace lantern::device {

/// One block of anonymous memory, page aligned, allocated and touched once; nothing is allocated
/// afterwards.
class Arena {
 public:
  Arena() = default;
  /// Error of kResource, with the size, when the system refuses.
  explicit Arena(Bytes bytes);
  ~Arena();
  Arena(Arena&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Arena& operator=(Arena&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* at(Bytes offset) const { return data_ + offset; }
  Bytes bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace lantern::device
