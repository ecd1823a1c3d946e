#include "device/machine.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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

Bytes peak_resident_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<Bytes>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

}  // namespace lantern::device
