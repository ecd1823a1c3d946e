#pragma once

#include "core/device_spec.hpp"
#include "device/file_tier.hpp"
#include "device/tier.hpp"

namespace lantern::device {

/// Times copies of up to `bytes` (a multiple of 4 KiB) out to a tier, then in again, and small ones
/// for the latency. A few copies of the size planned for are enough: they take as long as moving
/// the bytes does.
LinkSpec measure(Tier& tier, Bytes bytes);
/// All of a file, written twice and read (memory.md, section 1).
LinkSpec measure_disk(FileTier& file);

}  // namespace lantern::device
