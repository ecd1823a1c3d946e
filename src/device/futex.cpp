#include "device/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace lantern::device {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::optional<Clock::time_point> due) {
  timespec until{};
  if (due) {
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(due->time_since_epoch());
    until.tv_sec = since.count() / 1'000'000'000;
    until.tv_nsec = since.count() % 1'000'000'000;
  }
  // The bitset form takes an absolute time of the monotonic clock, which steady_clock is on Linux.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, due ? &until : nullptr, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lantern::device
