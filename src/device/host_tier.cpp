#include "device/host_tier.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "device/machine.hpp"

namespace lantern::device {

namespace {

// Between two of these a copy looks at the clock and at whether it is given up.
constexpr Bytes kPiece = 1_MiB;

Arena allocate(const HostTierOptions& options) {
  if (const Bytes usable = usable_memory(); options.bytes > usable - options.beside)
    refuse_host_memory(options.bytes, options.beside, usable);
  Arena memory(options.bytes);
  // Touched now: what the system cannot give shows before the first image, and no copy waits for
  // pages.
  constexpr Bytes kPage = 4_KiB;
  for (Bytes at = 0; at < options.bytes; at += kPage) *memory.at(at) = std::byte{0};
  return memory;
}

// `copy(at, bytes)` moves that part.
template <typename Copy>
void in_pieces(Bytes bytes, Pace& pace, CopyControl& control, Copy copy) {
  pace.begin();
  for (Bytes at = 0; at < bytes; at += kPiece) {
    control.check();
    const Bytes piece = std::min(kPiece, bytes - at);
    copy(at, static_cast<std::size_t>(piece));
    control.moved(piece);
    pace.wait(at + piece, at + piece == bytes, control);
  }
  control.check();
}

}  // namespace

void refuse_host_memory(Bytes asked, Bytes beside, Bytes limit) {
  throw Error(ErrorCode::kResource, "",
              "the plan moves {} into host memory beside {} that the process needs otherwise, and "
              "it may use {}: ask for less host memory (more is computed again), give a folder for "
              "the file tier, or take a smaller mini-batch",
              format_bytes(asked), format_bytes(beside), format_bytes(limit));
}

HostTier::HostTier(const HostTierOptions& options)
    : memory_(allocate(options)), out_(Pace::out(options.link)), in_(Pace::in(options.link)) {}

void HostTier::write(Bytes offset, std::span<const std::byte> from, CopyControl& control) {
  const auto bytes = static_cast<Bytes>(from.size());
  LANTERN_ASSERT(offset >= 0 && offset + bytes <= memory_.bytes(), "copies stay inside the tier");
  in_pieces(bytes, out_, control, [&](Bytes at, std::size_t piece) {
    std::memcpy(memory_.at(offset + at), from.data() + at, piece);
  });
}

void HostTier::read(Bytes offset, std::span<std::byte> to, CopyControl& control) {
  const auto bytes = static_cast<Bytes>(to.size());
  LANTERN_ASSERT(offset >= 0 && offset + bytes <= memory_.bytes(), "copies stay inside the tier");
  in_pieces(bytes, in_, control, [&](Bytes at, std::size_t piece) {
    std::memcpy(to.data() + at, memory_.at(offset + at), piece);
  });
}

}  // namespace lantern::device
