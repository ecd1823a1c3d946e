#pragma once

#include "device/arena.hpp"
#include "device/tier.hpp"

namespace lantern::device {

struct HostTierOptions {
  Bytes bytes = 0;
  /// Copies take as long as over this link; one that does not exist: as fast as they go.
  LinkSpec link;
  Bytes beside = 0;  ///< what the process needs besides: the arena
};

/// RAM behind a link: one block, allocated and touched at start.
class HostTier final : public Tier {
 public:
  /// Error of kResource with the size, the limit and the remedies when it does not fit.
  explicit HostTier(const HostTierOptions& options);

  Bytes bytes() const override { return memory_.bytes(); }
  std::string name() const override { return "host memory"; }
  using Tier::read;
  using Tier::write;
  void write(Bytes offset, std::span<const std::byte> from, CopyControl& control) override;
  void read(Bytes offset, std::span<std::byte> to, CopyControl& control) override;

 private:
  Arena memory_;
  Pace out_, in_;
};

/// The refusal of a host tier: what was asked, what the limit is, what to do.
[[noreturn]] void refuse_host_memory(Bytes asked, Bytes beside, Bytes limit);

}  // namespace lantern::device
