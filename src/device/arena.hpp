#pragma once

#include <cstddef>
#include <utility>

#include "core/types.hpp"

namespace lantern::device {

struct ArenaOptions {
  /// A page on either side that ends the process when touched.
  bool guard = false;
};

/// One block of anonymous memory, page aligned, zeros at first; nothing is allocated afterwards.
class Arena {
 public:
  Arena() = default;
  /// Error of kResource, with the size, when the system refuses.
  explicit Arena(Bytes bytes, ArenaOptions options = {});
  ~Arena();
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }

  std::byte* at(Bytes offset) const { return data_ + offset; }
  Bytes bytes() const { return bytes_; }

 private:
  void swap(Arena& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(block_bytes_, other.block_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* block_ = nullptr;  // with the guard pages
  std::size_t block_bytes_ = 0;
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace lantern::device
