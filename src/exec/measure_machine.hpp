#pragma once

#include <filesystem>

#include "core/device_spec.hpp"

namespace lantern::exec {

/// This machine as the planner sees it: its memory, peak arithmetic and copy bandwidth with so many
/// threads, measured in well under a second. No disk link.
/// `most_memory` bounds what is taken for that.
DeviceSpec measure_cpu(int threads, Bytes most_memory = 1_GiB);

/// Adds the link to files in `folder`: writes and reads one there, around the page cache where the
/// system allows it, and removes it. Also measures how much copies slow computing down.
/// `most_bytes` bounds the file. Throws kResource, naming the folder, when it cannot be written.
void measure_disk(DeviceSpec& device, const std::filesystem::path& folder, Bytes most_bytes,
                  int threads);

}  // namespace lantern::exec
