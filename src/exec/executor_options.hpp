#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/device_spec.hpp"
#include "device/arena.hpp"
#include "device/tier.hpp"
#include "exec/trace.hpp"

namespace lantern::exec {

struct ExecutorOptions {
  int threads = 1;
  /// Shared by networks that take turns, at least as large as each program's; null: one of its own,
  /// zeros at first. What lies in a given arena is left as it is.
  std::shared_ptr<device::Arena> arena;
  /// Where evicted tensors wait; as large as the program says. Null where it evicts none.
  std::shared_ptr<device::Tier> host, file;

  bool guard = false;            ///< an arena of its own lies between pages that nothing may touch
  bool poison = false;           ///< buffers hold NaN patterns before their life and after it
  bool compare_copies = false;   ///< hashes tell whether what comes in is what went out
  double watchdog_seconds = 30;  ///< a copy that does not get on for so long ends the run

  /// Where the compute threads and the copy threads stay; empty: anywhere.
  std::vector<int> compute_cores, copy_cores;

  /// No copy threads: the compute thread makes the copies, and time is that of the cost model.
  std::optional<DeviceSpec> virtual_device;
  /// With a virtual device: copies are made as late as the program allows, when they are waited
  /// for, instead of at once. A program that is right gives the same bits either way.
  bool copy_late = false;

  std::shared_ptr<Trace> trace;  ///< null: nothing is recorded
};

}  // namespace lantern::exec
