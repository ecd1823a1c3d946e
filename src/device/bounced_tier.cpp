#include "device/bounced_tier.hpp"

#include <algorithm>
#include <cstring>

namespace lantern::device {

BouncedTier::BouncedTier(const LinkSpec& link, std::shared_ptr<Tier> behind)
    : behind_(std::move(behind)),
      out_ring_(std::min(kRing, behind_->bytes())),
      in_ring_(std::min(kRing, behind_->bytes())),
      out_(Pace::out(link)),
      in_(Pace::in(link)) {}

void BouncedTier::write(Bytes offset, std::span<const std::byte> from, CopyControl& control) {
  const auto bytes = static_cast<Bytes>(from.size());
  out_.begin();
  for (Bytes at = 0; at < bytes; at += kRing) {
    const auto piece = static_cast<std::size_t>(std::min(kRing, bytes - at));
    std::memcpy(out_ring_.at(0), from.data() + at, piece);
    out_.wait(at + static_cast<Bytes>(piece), true, control);
    behind_->write(offset + at, {out_ring_.at(0), piece}, control);
  }
}

void BouncedTier::read(Bytes offset, std::span<std::byte> to, CopyControl& control) {
  const auto bytes = static_cast<Bytes>(to.size());
  in_.begin();
  for (Bytes at = 0; at < bytes; at += kRing) {
    const auto piece = static_cast<std::size_t>(std::min(kRing, bytes - at));
    behind_->read(offset + at, {in_ring_.at(0), piece}, control);
    std::memcpy(to.data() + at, in_ring_.at(0), piece);
    in_.wait(at + static_cast<Bytes>(piece), true, control);
  }
}

}  // namespace lantern::device
