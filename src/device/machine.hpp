#pragma once

#include <optional>
#include <string_view>

#include "core/types.hpp"

namespace lantern::device {

/// Cores that this process may use: affinity mask, cut by the cgroup's quota. At least 1.
int usable_cores();
/// Memory that this process may use: the machine's, cut by the cgroup's limit and by ulimit.
Bytes usable_memory();
/// Throws kResource when the process may not use so much: the system would hand it out and end the
/// process later. `what` needs it ("arena and pictures"), `mend` says what needs less.
void require_memory(Bytes needed, std::string_view what, std::string_view mend);
/// Of the usable memory, what is left beside an arena; at least 1.
Bytes memory_beside(Bytes arena);
/// Largest resident size so far.
Bytes peak_resident_memory();

}  // namespace lantern::device
