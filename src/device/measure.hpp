#pragma once

#include <filesystem>

#include "core/device_spec.hpp"
#include "device/tier.hpp"

namespace lantern::device {

/// Times copies of up to `bytes` (a multiple of 4 KiB) out to a tier, then in again, and small ones
/// for the latency. A few copies of the size planned for are enough: they take as long as moving
/// the bytes does.
LinkSpec measure(Tier& tier, Bytes bytes);
/// A file in the folder, written then read (memory.md, section 1). Error of kResource when it
/// cannot be made.
LinkSpec measure_disk(const std::filesystem::path& folder, Bytes bytes = 256_MiB);
/// RAM to RAM.
LinkSpec measure_host(Bytes bytes = 64_MiB);

}  // namespace lantern::device
