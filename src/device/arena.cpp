#include "device/arena.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "device/machine.hpp"

namespace lantern::device {

Arena::Arena(Bytes bytes, ArenaOptions options) : bytes_(bytes) {
  if (bytes == 0) return;
  // The system hands out more than it has and ends the process later; what cannot fit is refused
  // here.
  if (const Bytes usable = usable_memory(); bytes > usable) {
    throw Error(ErrorCode::kResource, "",
                "the network needs an arena of {}, this process may use {}: a smaller mini-batch "
                "(more subdivisions), "
                "batch or network size needs less; `lantern plan` shows how much",
                format_bytes(bytes), format_bytes(usable));
  }
  constexpr Bytes kPage = 4_KiB;
  const Bytes guard = options.guard ? kPage : 0;
  block_bytes_ = static_cast<std::size_t>(round_up(bytes, kPage) + 2 * guard);
  void* block = mmap(nullptr, block_bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) {
    throw Error(ErrorCode::kResource, "", "the system refused an arena of {}: {}",
                format_bytes(bytes), std::strerror(errno));
  }
  block_ = block;
  data_ = static_cast<std::byte*>(block) + guard;
  if (options.guard) {
    mprotect(block, kPage, PROT_NONE);
    mprotect(data_ + round_up(bytes, kPage), kPage, PROT_NONE);
  }
  // Large pages spare the kernels most of their address translation; a refusal is no fault.
  madvise(data_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
}

Arena::~Arena() {
  if (block_ != nullptr) munmap(block_, block_bytes_);
}

}  // namespace lantern::device
