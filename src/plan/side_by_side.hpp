#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace lantern::plan {

/// Calls `work(i)` for every i below `count`, on as many threads as this process may use, in no
/// particular order, and returns when all calls have. Calls must not share what they write. What
/// they throw is thrown from here, after the others are done; of several, that of the lowest i.
template <typename Work>
void side_by_side(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr thrown;
  std::size_t thrown_by = count;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::scoped_lock lock(guard);
        if (i > thrown_by) continue;
        thrown = std::current_exception();
        thrown_by = i;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t threads = std::min<std::size_t>(count, std::thread::hardware_concurrency());
    try {
      for (std::size_t t = 1; t < threads; ++t) helpers.emplace_back(take_turns);
    } catch (const std::system_error&) {
      // No more threads to be had: those there are do it.
    }
    take_turns();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace lantern::plan
