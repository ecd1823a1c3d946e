#pragma once

#include <optional>
#include <string>

#include "cli/flags.hpp"
#include "core/device_spec.hpp"
#include "layers/network.hpp"
#include "plan/planner.hpp"

namespace lantern::cli {

/// The machine to plan for and how much of it may be used.
struct Budget {
  DeviceSpec device;
  bool is_here = false;     ///< this machine's CPU: times are measured
  Bytes memory = 0;         ///< device memory; on a CPU that of the whole process
  std::string memory_text;  ///< as it would be written in a cfg
  Bytes host_memory = 0;    ///< of the host tier
  Bytes disk_memory = 0;
  std::string disk_text;               ///< folder and size as given; empty without a file tier
  std::optional<double> max_slowdown;  ///< 0.1 for 10 %

  bool is_cpu() const { return !device.host.exists(); }
};

/// Reads -device, -memory, -host_memory, -disk_memory and -max_slowdown; measures this machine when
/// it is the device. Errors of kUsage and kDevice.
Budget read_budget(const Arguments& arguments, int threads);

/// The device alone, with the disk link when a file tier is asked for.
DeviceSpec find_device(const std::string& name, int threads);

/// What training holds besides the arena, on the CPU.
struct Surroundings {
  Bytes loader = 0;  ///< pictures and truth of the iterations held ready
  Bytes fixed = 0;   ///< code and libraries
  Bytes sum() const { return loader + fixed; }
};
/// Iterations that the loader holds ready, see data::LoaderSpec::queue.
inline constexpr std::int64_t kLoaderQueue = 2;
/// `batch` images of an iteration, each with `truth_floats` numbers of truth.
Surroundings surroundings_of(const layers::Network& network, std::int64_t batch,
                             std::int64_t truth_floats);

}  // namespace lantern::cli
