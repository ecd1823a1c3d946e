#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/file_tier.hpp"
#include "device/tier.hpp"

namespace lantern::device {

enum class Direction : std::uint8_t { kOut, kIn };
std::string_view to_string(Direction direction);

/// What happens to one copy of a tier; copies of a direction are counted from 1.
struct Fault {
  enum class Kind : std::uint8_t {
    kFail,   ///< input/output error
    kLate,   ///< takes `seconds` longer
    kNever,  ///< does not end until it is given up
  };
  Kind kind = Kind::kFail;
  Direction direction = Direction::kOut;
  std::int64_t copy = 1;
  double seconds = 0;
};

/// Everything that can be made to go wrong with the tiers of a simulated device.
struct FaultPlan {
  std::vector<Fault> host, file;
  bool refuse_host = false;  ///< host memory is not granted
  bool disk_full = false;    ///< the file finds no room at start
  FileFaults pieces;         ///< of the file's writes
  /// Seconds that a copy, counted from 1, is late; empty: none.
  std::function<double(Direction, std::int64_t)> delay;
};

/// A tier whose copies go wrong by plan.
class FaultyTier final : public Tier {
 public:
  FaultyTier(std::shared_ptr<Tier> behind, std::vector<Fault> faults,
             std::function<double(Direction, std::int64_t)> delay);

  Bytes bytes() const override { return behind_->bytes(); }
  std::string name() const override { return behind_->name(); }
  using Tier::read;
  using Tier::write;
  void write(Bytes offset, std::span<const std::byte> from, CopyControl& control) override;
  void read(Bytes offset, std::span<std::byte> to, CopyControl& control) override;

 private:
  void befall(Direction direction, std::int64_t copy, CopyControl& control) const;

  std::shared_ptr<Tier> behind_;
  std::vector<Fault> faults_;
  std::function<double(Direction, std::int64_t)> delay_;
  std::int64_t outs_ = 0, ins_ = 0;  // each touched by one thread
};

}  // namespace lantern::device
