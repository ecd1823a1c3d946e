#pragma once

namespace lantern::device {

/// Gives free memory back and lets peak_resident_memory() start anew from what is resident now.
/// False where the system does not allow it; the peak then stays that of all before.
bool restart_peak_memory();

}  // namespace lantern::device
