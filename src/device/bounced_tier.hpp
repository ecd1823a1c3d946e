#pragma once

#include <memory>

#include "device/arena.hpp"
#include "device/tier.hpp"

namespace lantern::device {

/// A tier that a device cannot reach by itself: bytes cross the host link into a small ring in RAM
/// and go on from there. The link gets on while the tier behind it works, so that a copy takes
/// about as long as the slower of both.
class BouncedTier final : public Tier {
 public:
  BouncedTier(const LinkSpec& link, std::shared_ptr<Tier> behind);

  Bytes bytes() const override { return behind_->bytes(); }
  std::string name() const override { return behind_->name(); }
  using Tier::read;
  using Tier::write;
  void write(Bytes offset, std::span<const std::byte> from, CopyControl& control) override;
  void read(Bytes offset, std::span<std::byte> to, CopyControl& control) override;

 private:
  static constexpr Bytes kRing = 16_MiB;

  std::shared_ptr<Tier> behind_;
  Arena out_ring_, in_ring_;
  Pace out_, in_;
};

}  // namespace lantern::device
