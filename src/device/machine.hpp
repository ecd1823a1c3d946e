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
/// Largest resident size so far, and that of now.
Bytes peak_resident_memory();
Bytes resident_memory();
/// What `ulimit -v` and `ulimit -d` still let the process map; the largest number when they are not
/// set.
Bytes memory_to_map();
/// Has the heap hand large blocks back as soon as they are free, and keep few for each thread.
void keep_heap_small();
/// Gives the heap's free pages back.
void return_free_memory();

}  // namespace lantern::device
