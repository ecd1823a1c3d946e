#include "device/pin.hpp"

#include <fmt/ranges.h>
#include <sched.h>

#include <cstring>

#include "core/error.hpp"

namespace lantern::device {

void pin_thread(pthread_t thread, std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  if (const int error = pthread_setaffinity_np(thread, sizeof set, &set); error != 0) {
    throw Error(ErrorCode::kUsage, "", "a thread cannot be kept on cores {}: {}",
                fmt::join(cores, ", "), std::strerror(error));
  }
}

}  // namespace lantern::device
