#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace lantern::device {

using Clock = std::chrono::steady_clock;

/// Sleeps while `word` is `expected`, until it is woken or, if given, until `due`; may return
/// early.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::optional<Clock::time_point> due = std::nullopt);
/// Wakes everybody who sleeps on the word. Change it before.
void wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace lantern::device
