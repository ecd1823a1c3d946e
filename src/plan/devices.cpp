#include "plan/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::plan {

namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
// Starting a kernel, and a copy between pinned memory and a card, as drivers do it.
constexpr double kKernelStart = 5e-6;
constexpr double kCopyStart = 1e-5;
// Copies take memory bandwidth from kernels; 3 % where memory is much faster than the link.
constexpr double kCardContention = 1.03;

DeviceSpec card(std::string name, Bytes memory, Bytes host_memory, double flops, double bandwidth,
                double link) {
  return {.name = std::move(name),
          .memory = memory,
          .host_memory = host_memory,
          .flops_per_second = flops,
          .memory_bytes_per_second = bandwidth,
          .op_seconds = kKernelStart,
          .host = {link, link, kCopyStart},
          .contention = kCardContention};
}

/// One line of the text form.
struct Key {
  std::string_view name;
  std::string_view unit;
  Bytes DeviceSpec::*bytes = nullptr;
  double DeviceSpec::*number = nullptr;
  LinkSpec DeviceSpec::*link = nullptr;
  double LinkSpec::*of_link = nullptr;
  double least = 0;  ///< smallest value allowed

  double value(const DeviceSpec& device) const {
    if (bytes) return static_cast<double>(device.*bytes);
    return link ? device.*link.*of_link : device.*number;
  }
};

constexpr double kPositive = std::numeric_limits<double>::min();

constexpr std::array kKeys{
    Key{.name = "memory", .unit = "bytes, or 8G", .bytes = &DeviceSpec::memory, .least = 1},
    Key{.name = "host_memory",
        .unit = "bytes behind the host link; 0 on a CPU",
        .bytes = &DeviceSpec::host_memory},
    Key{.name = "flops_per_second",
        .unit = "peak, multiply-adds count twice",
        .number = &DeviceSpec::flops_per_second,
        .least = kPositive},
    Key{.name = "memory_bytes_per_second",
        .unit = "read and written together",
        .number = &DeviceSpec::memory_bytes_per_second,
        .least = kPositive},
    Key{.name = "op_seconds", .unit = "to start one op", .number = &DeviceSpec::op_seconds},
    Key{.name = "host_out_bytes_per_second",
        .unit = "device to host; 0: no such link",
        .link = &DeviceSpec::host,
        .of_link = &LinkSpec::out_bytes_per_second},
    Key{.name = "host_in_bytes_per_second",
        .unit = "host to device",
        .link = &DeviceSpec::host,
        .of_link = &LinkSpec::in_bytes_per_second},
    Key{.name = "host_latency_seconds",
        .unit = "to start one copy",
        .link = &DeviceSpec::host,
        .of_link = &LinkSpec::latency_seconds},
    Key{.name = "disk_out_bytes_per_second",
        .unit = "writing a file; 0: not known",
        .link = &DeviceSpec::disk,
        .of_link = &LinkSpec::out_bytes_per_second},
    Key{.name = "disk_in_bytes_per_second",
        .unit = "reading it",
        .link = &DeviceSpec::disk,
        .of_link = &LinkSpec::in_bytes_per_second},
    Key{.name = "disk_latency_seconds",
        .unit = "to start one transfer",
        .link = &DeviceSpec::disk,
        .of_link = &LinkSpec::latency_seconds},
    Key{.name = "contention",
        .unit = "factor on compute time while a copy runs",
        .number = &DeviceSpec::contention,
        .least = 1},
};

/// Reads the lines; faults are noted, not thrown.
class Reader {
 public:
  void line(std::string_view text, int number) {
    text = trim(text.substr(0, text.find('#')));
    if (text.empty()) return;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return fault(number, "want key = value");
    const std::string_view name = trim(text.substr(0, equals));
    const std::string_view value = trim(text.substr(equals + 1));
    if (name == "name") {
      if (value.empty()) fault(number, "name is empty");
      device_.name = value;
      return;
    }
    const auto key = std::ranges::find(kKeys, name, &Key::name);
    if (key == kKeys.end()) return unknown(number, name);
    const auto index = static_cast<std::size_t>(key - kKeys.begin());
    if (seen_[index]) return fault(number, fmt::format("{} is given twice", name));
    seen_[index] = true;
    store(*key, value, number);
  }

  DeviceSpec finish(const std::string& where) {
    if (device_.name.empty()) fault(0, "name is missing");
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (!seen_[i]) fault(0, fmt::format("{} is missing", kKeys[i].name));
    }
    if (faults_.empty() && (device_.host.out_bytes_per_second > 0) != device_.host.exists())
      fault(0, "the host link has one direction only; give both bandwidths, or 0 for both");
    if (faults_.empty() && (device_.disk.out_bytes_per_second > 0) != device_.disk.exists())
      fault(0, "the disk link has one direction only; give both bandwidths, or 0 for both");
    if (!faults_.empty()) {
      throw Error(ErrorCode::kInvalidConfig, where,
                  "not a device: {}; `lantern plan --write-device FILE` writes one to start from",
                  fmt::join(faults_, "; "));
    }
    return device_;
  }

 private:
  void fault(int number, std::string text) {
    faults_.push_back(number > 0 ? fmt::format("line {}: {}", number, text) : std::move(text));
  }

  void unknown(int number, std::string_view name) {
    std::vector<std::string_view> names{"name"};
    for (const Key& key : kKeys) names.push_back(key.name);
    const auto near = nearest(name, names);
    fault(number, fmt::format("no key '{}'{}", name,
                              near ? fmt::format("; did you mean '{}'?", *near) : ""));
  }

  void store(const Key& key, std::string_view text, int number) {
    std::optional<double> given;
    if (!key.bytes) {
      given = parse_float(text);
    } else if (const std::optional<Bytes> bytes = parse_bytes(text)) {
      given = static_cast<double>(*bytes);
    }
    if (!given || !(*given >= key.least) || !(*given < 0x1p62)) {
      return fault(number, fmt::format("{} is '{}', want a number{}", key.name, text,
                                       key.least == 1  ? " of at least 1"
                                       : key.least > 0 ? " above 0"
                                                       : " of at least 0"));
    }
    if (key.bytes) {
      device_.*key.bytes = static_cast<Bytes>(*given);
    } else if (key.link) {
      device_.*key.link.*key.of_link = *given;
    } else {
      device_.*key.number = *given;
    }
  }

  DeviceSpec device_;
  std::array<bool, kKeys.size()> seen_{};
  std::vector<std::string> faults_;
};

}  // namespace

std::span<const DeviceSpec> device_presets() {
  static const std::array presets{
      card("rtx2070", 8_GiB, 64_GiB, 7.5 * kTera, 448 * kGiga, 12 * kGiga),
      card("h200", 141'000'000'000, 1024_GiB, 60 * kTera, 4800 * kGiga, 50 * kGiga),
      card("h200-tf32", 141'000'000'000, 1024_GiB, 300 * kTera, 4800 * kGiga, 50 * kGiga),
      // Quadro M1000M: 512 cores at 993 MHz, 128 bit GDDR5 at 5 Gbit/s.
      card("m1000m", 2_GiB, 64_GiB, 1.017 * kTera, 80 * kGiga, 12 * kGiga),
  };
  return presets;
}

std::optional<DeviceSpec> find_preset(std::string_view name) {
  const auto presets = device_presets();
  const auto found = std::ranges::find(presets, name, &DeviceSpec::name);
  return found == presets.end() ? std::nullopt : std::optional(*found);
}

std::string to_text(const DeviceSpec& device) {
  std::string text =
      fmt::format("# What the planner knows of a machine.\nname = {}\n", device.name);
  for (const Key& key : kKeys) {
    const std::string value =
        key.bytes ? fmt::format("{}", device.*key.bytes) : fmt::format("{}", key.value(device));
    text += fmt::format("{} = {}  # {}\n", key.name, value, key.unit);
  }
  return text;
}

DeviceSpec parse_device(std::string_view text, const std::string& where) {
  Reader reader;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) reader.line(line, ++number);
  return reader.finish(where);
}

}  // namespace lantern::plan
