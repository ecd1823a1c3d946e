#pragma once

#include <filesystem>
#include <memory>

#include "core/device_spec.hpp"
#include "device/arena.hpp"
#include "device/faults.hpp"
#include "device/tier.hpp"

namespace lantern::device {

/// What a program needs of a simulated device.
struct SimOptions {
  Bytes arena_bytes = 0;
  Bytes host_bytes = 0, file_bytes = 0;
  std::filesystem::path folder;  ///< of the file tier
  FaultPlan faults;
};

/// A device whose memory is a block of RAM between guard pages and whose links are slowed down to
/// those of the spec. Both tiers are null where the program has no use for them.
struct SimulatedDevice {
  std::shared_ptr<Arena> arena;
  std::shared_ptr<Tier> host, file;
};

/// Error of kResource when the arena is larger than the device, or a tier cannot be had.
SimulatedDevice make_simulated_device(const DeviceSpec& spec, const SimOptions& options);

}  // namespace lantern::device
