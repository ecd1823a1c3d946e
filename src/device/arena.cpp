#include "device/arena.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "device/machine.hpp"

namespace lantern::device {

Arena::Arena(Bytes bytes) : bytes_(bytes) {
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
  void* block = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) {
    throw Error(ErrorCode::kResource, "", "the system refused an arena of {}: {}",
                format_bytes(bytes), std::strerror(errno));
  }
  // Large pages spare the kernels most of their address translation; a refusal is no fault.
  madvise(block, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(block);
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

}  // namespace lantern::device
