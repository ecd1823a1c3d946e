#include "device/sim.hpp"

#include <cerrno>

#include "core/error.hpp"
#include "device/bounced_tier.hpp"
#include "device/host_tier.hpp"

namespace lantern::device {

SimulatedDevice make_simulated_device(const DeviceSpec& spec, const SimOptions& options) {
  if (options.arena_bytes > spec.memory) {
    throw Error(ErrorCode::kResource, "", "the plan needs {} of the device, {} has {}",
                format_bytes(options.arena_bytes), spec.name, format_bytes(spec.memory));
  }
  const FaultPlan& faults = options.faults;
  SimulatedDevice device;
  if (options.host_bytes > 0) {
    if (faults.refuse_host || options.host_bytes > spec.host_memory)
      refuse_host_memory(options.host_bytes, 0, spec.host_memory);
    device.host = std::make_shared<HostTier>(HostTierOptions{
        .bytes = options.host_bytes, .link = spec.host, .beside = options.arena_bytes});
    device.host = std::make_shared<FaultyTier>(device.host, faults.host, faults.delay);
  }
  if (options.file_bytes > 0) {
    if (faults.disk_full) refuse_file(options.folder, options.file_bytes, 0, ENOSPC);
    device.file = std::make_shared<FileTier>(FileTierOptions{.folder = options.folder,
                                                             .bytes = options.file_bytes,
                                                             .link = spec.disk,
                                                             .faults = faults.pieces});
    if (spec.host.exists()) device.file = std::make_shared<BouncedTier>(spec.host, device.file);
    device.file = std::make_shared<FaultyTier>(device.file, faults.file, faults.delay);
  }
  device.arena = std::make_shared<Arena>(options.arena_bytes, ArenaOptions{.guard = true});
  return device;
}

}  // namespace lantern::device
