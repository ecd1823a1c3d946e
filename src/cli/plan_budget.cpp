#include "cli/plan_budget.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "exec/measure_machine.hpp"
#include "plan/devices.hpp"

namespace lantern::cli {

namespace {

/// Code, libraries (oneDNN compiles kernels of its own) and small things: measured as the resident
/// size of training processes minus their arena and loader queue, 25 to 31 MiB, rounded up.
constexpr Bytes kFixedBytes = 32_MiB;
// Pinned memory is taken from everybody else on the host.
constexpr double kHostShare = 0.75;

[[noreturn]] void bad_size(std::string_view flag, std::string_view text, std::string_view want) {
  throw Error(ErrorCode::kUsage, "", "-{} is '{}', want {}", flag, text, want);
}

// "8G", "75%" of `whole`, or "auto", which is all of it.
Bytes read_size(std::string_view flag, std::string_view text, Bytes whole, double share) {
  if (text == "auto") return static_cast<Bytes>(static_cast<double>(whole) * share);
  if (text.ends_with('%')) {
    const std::optional<double> percent = parse_float(trim(text.substr(0, text.size() - 1)));
    if (!percent || !(*percent > 0) || *percent > 100)
      bad_size(flag, text, "a percentage above 0 and at most 100%");
    return static_cast<Bytes>(static_cast<double>(whole) * *percent / 100);
  }
  const std::optional<Bytes> bytes = parse_bytes(text);
  if (!bytes) bad_size(flag, text, "a size like 6G or 512M, a percentage like 75%, or auto");
  return *bytes;
}

void read_disk(const std::string& text, int threads, Budget& budget) {
  const std::size_t colon = text.rfind(':');
  const std::string folder = colon == std::string::npos ? "" : text.substr(0, colon);
  const std::optional<Bytes> size =
      parse_bytes(colon == std::string::npos ? text : text.substr(colon + 1));
  if (!size || *size <= 0 || (folder.empty() && budget.is_here))
    bad_size("disk_memory", text, "a folder and a size like /scratch:100G");
  budget.disk_memory = *size;
  budget.disk_text = text;
  if (budget.is_here) {
    exec::measure_disk(budget.device, folder, *size, threads);
  } else if (!budget.device.disk.exists()) {
    throw Error(
        ErrorCode::kUsage, "",
        "-disk_memory {}: how fast the disk of device {} is, is not known; write the device "
        "into a file with --write-device, fill in its disk_ lines and give --device FILE",
        text, budget.device.name);
  }
}

}  // namespace

DeviceSpec find_device(const std::string& name, int threads) {
  if (name == "cpu") return exec::measure_cpu(threads);
  if (const auto preset = plan::find_preset(name)) return *preset;
  if (std::filesystem::is_regular_file(name))
    return plan::parse_device(read_file(name, 1_MiB), name);
  std::string names;
  for (const DeviceSpec& preset : plan::device_presets()) names += ", " + preset.name;
  throw Error(
      ErrorCode::kDevice, "",
      "-device {}: this build plans for cpu{} and for files that --write-device has written", name,
      names);
}

Budget read_budget(const Arguments& arguments, int threads) {
  Budget budget;
  const std::string name = arguments.text("device");
  budget.device = find_device(name, threads);
  budget.is_here = name == "cpu";
  const auto given = [&](std::string_view flag) {
    return arguments.has(flag) ? arguments.text(flag) : std::string("auto");
  };
  budget.memory_text = given("memory");
  budget.memory = read_size("memory", budget.memory_text, budget.device.memory, 1);
  if (budget.is_cpu() && arguments.has("host_memory")) {
    throw Error(ErrorCode::kUsage, "",
                "-host_memory: on a CPU, RAM is the memory that -memory bounds; a slower tier is "
                "-disk_memory DIR:SIZE");
  }
  if (!budget.is_cpu()) {
    budget.host_memory =
        read_size("host_memory", given("host_memory"), budget.device.host_memory, kHostShare);
  }
  if (arguments.has("disk_memory")) read_disk(arguments.text("disk_memory"), threads, budget);
  if (arguments.has("max_slowdown")) {
    std::string_view text = trim(arguments.text("max_slowdown"));
    const std::string whole(text);
    if (text.ends_with('%')) text.remove_suffix(1);
    const std::optional<double> percent = parse_float(trim(text));
    if (!percent || !(*percent >= 0) || *percent > 10000)
      bad_size("max_slowdown", whole, "a percentage like 10%");
    budget.max_slowdown = *percent / 100;
  }
  return budget;
}

Surroundings surroundings_of(const layers::Network& network, std::int64_t batch,
                             std::int64_t truth_floats) {
  constexpr Bytes kFloat = sizeof(float);
  return {.loader = kLoaderQueue * batch * (network.input().elements() + truth_floats) * kFloat,
          .fixed = kFixedBytes};
}

}  // namespace lantern::cli
