#pragma once

#include <optional>

#include "core/types.hpp"

namespace lantern::device {

/// Cores that this process may use: affinity mask, cut by the cgroup's quota. At least 1.
int usable_cores();
/// Memory that this process may use: the machine's, cut by the cgroup's limit and by ulimit.
Bytes usable_memory();
/// Largest resident size so far.
Bytes peak_resident_memory();

}  // namespace lantern::device
