#include "train/memory_settings.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"
#include "device/machine.hpp"

namespace lantern::train {

namespace {

constexpr std::string_view kNoHostTier =
    "on a CPU, RAM is the memory that memory= bounds, there is no other behind it; a slower tier "
    "is disk_memory=FOLDER:SIZE";

[[noreturn]] void bad_flag(std::string_view flag, std::string_view text, std::string_view want) {
  throw Error(ErrorCode::kUsage, "", "-{} is '{}', want {}", flag, text, want);
}

std::optional<double> percent_of(std::string_view text, double most) {
  text = trim(text);
  if (text.ends_with('%')) text.remove_suffix(1);
  const std::optional<double> value = parse_float(trim(text));
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

// "6G" or "75%"; "auto" is nothing.
std::optional<Bytes> memory_of(std::string_view text) {
  if (text.empty() || text == "auto") return std::nullopt;
  if (text.ends_with('%')) {
    const std::optional<double> percent = percent_of(text, 100);
    if (!percent || *percent <= 0) bad_flag("memory", text, "a share above 0 and at most 100%");
    return static_cast<Bytes>(static_cast<double>(device::usable_memory()) * *percent / 100);
  }
  const std::optional<Bytes> bytes = parse_bytes(text);
  if (!bytes || *bytes <= 0)
    bad_flag("memory", text, "auto, a size such as 6G or a share such as 75%");
  return bytes;
}

void read_disk(const std::string& text, MemorySettings& result) {
  const std::size_t colon = text.rfind(':');
  const std::optional<Bytes> size = colon == std::string::npos || colon == 0
                                        ? std::nullopt
                                        : parse_bytes(std::string_view(text).substr(colon + 1));
  if (!size || *size <= 0)
    bad_flag("disk_memory", text, "a folder and a size such as /scratch:100G");
  result.disk_folder = text.substr(0, colon);
  result.disk_memory = *size;
}

void refuse_host_memory(const layers::NetSpec& net, const TrainSettings& settings) {
  const auto is_set = [](const std::string& text) { return !text.empty() && text != "auto"; };
  if (is_set(settings.host_memory))
    throw Error(ErrorCode::kUsage, "", "-host_memory: {}", kNoHostTier);
  if (settings.host_memory.empty() && is_set(net.host_memory)) {
    throw Error(ErrorCode::kInvalidConfig, net.host_memory_where, "error: [net] host_memory={}: {}",
                net.host_memory, kNoHostTier);
  }
}

void map_old_keys(const layers::NetSpec& net, Console& console) {
  if (net.optimized_memory == 1) {
    console.notice(
        "optimized_memory=1: tensors share memory in every mode; it is mapped to memory=auto "
        "without another tier");
  } else if (net.optimized_memory > 1) {
    console.notice(fmt::format(
        "optimized_memory={}: mapped to memory=auto; its host memory is a tier of GPUs, on the CPU "
        "it is the same RAM. Results do not depend on it",
        net.optimized_memory));
  }
  if (net.workspace_size_limit_MB != 1024) {
    console.notice(
        fmt::format("workspace_size_limit_MB={}: it bounds the choice of GPU convolutions; those "
                    "of the CPU have no choice, their workspace is part of memory=",
                    net.workspace_size_limit_MB));
  }
}

}  // namespace

Bytes MemorySettings::process_bytes() const {
  constexpr Bytes kReserveParts = 16;
  const Bytes usable = device::usable_memory();
  return memory ? std::min(*memory, usable) : usable - usable / kReserveParts;
}

MemorySettings memory_settings(const layers::NetSpec& net, const TrainSettings& settings,
                               Console& console) {
  refuse_host_memory(net, settings);
  map_old_keys(net, console);
  MemorySettings result;
  result.memory_text = settings.memory.empty() ? net.memory : settings.memory;
  result.memory = memory_of(result.memory_text);
  const std::string& disk = settings.disk_memory.empty() ? net.disk_memory : settings.disk_memory;
  if (!disk.empty()) read_disk(disk, result);
  if (!settings.max_slowdown.empty()) {
    const std::optional<double> percent = percent_of(settings.max_slowdown, 10000);
    if (!percent) bad_flag("max_slowdown", settings.max_slowdown, "a percentage such as 10%");
    result.max_slowdown = *percent / 100;
  } else if (net.max_slowdown >= 0) {
    result.max_slowdown = static_cast<double>(net.max_slowdown) / 100;
  }
  result.mini_batch = net.mini_batch;
  if (settings.mini_batch == "auto") {
    result.mini_batch = MemorySettings::kAutoMiniBatch;
  } else if (!settings.mini_batch.empty()) {
    const auto images = parse_int(settings.mini_batch);
    if (!images || *images < 1 || *images > net.batch)
      bad_flag("mini_batch", settings.mini_batch,
               fmt::format("auto or 1 to {} images, a divisor of batch={}", net.batch, net.batch));
    result.mini_batch = static_cast<int>(*images);
  }
  if (result.mini_batch > 0 && net.batch % result.mini_batch != 0) {
    const std::string where = settings.mini_batch.empty() ? net.mini_batch_where : std::string();
    int below = result.mini_batch;
    int above = result.mini_batch;
    while (net.batch % below != 0) --below;
    while (above < net.batch && net.batch % above != 0) ++above;
    throw Error(where.empty() ? ErrorCode::kUsage : ErrorCode::kInvalidConfig, where,
                "mini_batch={} does not divide batch={}; nearest that do: {} and {}",
                result.mini_batch, net.batch, below, std::min(above, net.batch));
  }
  return result;
}

}  // namespace lantern::train
