#include "device/machine.hpp"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::device {

namespace {

// First line of a small system file; empty when it is not there.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A line "VmRSS:   123 kB" of this process.
Bytes status_bytes(std::string_view name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::string_view rest = trim(std::string_view(line).substr(name.size()));
    return parse_int(rest.substr(0, rest.find(' '))).value_or(0) * 1024;
  }
  return 0;
}

// Folder of this process in the unified hierarchy, and all of its parents: each may set a limit.
std::vector<std::string> control_groups() {
  std::vector<std::string> folders;
  std::filesystem::path group = "/";
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) group = line.substr(3);
  }
  for (;; group = group.parent_path()) {
    folders.push_back("/sys/fs/cgroup" + group.string());
    if (group == group.root_path() || group.empty()) return folders;
  }
}

}  // namespace

int usable_cores() {
  int cores = 1;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = CPU_COUNT(&mask);
  const auto limit = [&](double quota, double period) {
    if (quota > 0 && period > 0) cores = std::min(cores, static_cast<int>(quota / period + 0.999));
  };
  for (const std::string& folder : control_groups()) {
    const std::string line = first_line(folder + "/cpu.max");  // "200000 100000" or "max 100000"
    const std::vector<std::string_view> words = split(line, ' ');
    if (words.size() == 2)
      limit(parse_float(words[0]).value_or(0), parse_float(words[1]).value_or(0));
  }
  limit(parse_float(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")).value_or(0),
        parse_float(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us")).value_or(0));
  return std::max(cores, 1);
}

Bytes usable_memory() {
  Bytes bytes = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const auto limit = [&](const std::string& path) {
    if (const auto value = parse_int(first_line(path)); value && *value > 0) {
      bytes = std::min(bytes, *value);
    }
  };
  for (const std::string& folder : control_groups()) limit(folder + "/memory.max");
  limit("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  for (const int kind : {RLIMIT_AS, RLIMIT_DATA}) {  // `ulimit -v`, `ulimit -d`
    rlimit most{};
    if (getrlimit(kind, &most) == 0 && most.rlim_cur != RLIM_INFINITY) {
      bytes = std::min(bytes, static_cast<Bytes>(most.rlim_cur));
    }
  }
  return bytes;
}

void require_memory(Bytes needed, std::string_view what, std::string_view mend) {
  if (const Bytes usable = usable_memory(); needed > usable) {
    throw Error(ErrorCode::kResource, "", "{} need {}, this process may use {}: {}", what,
                format_bytes(needed), format_bytes(usable), mend);
  }
}

Bytes memory_beside(Bytes arena) { return std::max<Bytes>(1, usable_memory() - arena); }

// Not ru_maxrss, which a program takes over from the one that started it.
Bytes peak_resident_memory() { return status_bytes("VmHWM:"); }

Bytes resident_memory() { return status_bytes("VmRSS:"); }

Bytes memory_to_map() {
  Bytes left = std::numeric_limits<Bytes>::max();
  const auto limit = [&](int kind, std::string_view used) {
    rlimit most{};
    if (getrlimit(kind, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
      left = std::min(left, static_cast<Bytes>(most.rlim_cur) - status_bytes(used));
  };
  limit(RLIMIT_AS, "VmSize:");
  limit(RLIMIT_DATA, "VmData:");
  return std::max<Bytes>(0, left);
}

void keep_heap_small() {
  mallopt(M_MMAP_THRESHOLD, 256 * 1024);  // and no growing of it
  mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
  mallopt(M_ARENA_MAX, 2);
}

void return_free_memory() { malloc_trim(0); }

}  // namespace lantern::device
