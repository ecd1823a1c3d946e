#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/device_spec.hpp"

namespace lantern::plan {

/// Machines that can be planned for without being there: data-sheet peaks, memory and links.
std::span<const DeviceSpec> device_presets();
std::optional<DeviceSpec> find_preset(std::string_view name);

/// Text form of a device, one `key = value` a line with every field; `#` starts a remark.
std::string to_text(const DeviceSpec& device);
/// Reads that form. Every fault is collected and thrown as one kInvalidConfig naming `where` (the
/// file) and the lines: a key that is unknown, missing or given twice, a value out of range.
DeviceSpec parse_device(std::string_view text, const std::string& where);

/// RAM is the device's own memory: there is no tier behind a link but a file.
inline bool computes_in_ram(const DeviceSpec& device) { return !device.host.exists(); }

}  // namespace lantern::plan
