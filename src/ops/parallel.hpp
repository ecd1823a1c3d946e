#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace lantern::ops {

/// Runs body(job) for job in [0, jobs) on the compute team, split statically into contiguous
/// ranges. What a job computes must not depend on which thread runs it.
template <typename Body>
void parallel_for(std::int64_t jobs, int threads, Body body) {
  if (threads <= 1 || jobs <= 1) {
    for (std::int64_t job = 0; job < jobs; ++job) body(job);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t job = 0; job < jobs; ++job) body(job);
}

/// Runs body(begin, end) over [0, count) in equal ranges whose borders are multiples of 16.
template <typename Body>
void parallel_ranges(std::int64_t count, int threads, Body body) {
  constexpr std::int64_t kSmall = 8192;
  if (threads <= 1 || count < kSmall) {
    body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t share = (count / team + 15) / 16 * 16;
    const std::int64_t begin = std::min<std::int64_t>(count, share * omp_get_thread_num());
    const std::int64_t end =
        omp_get_thread_num() + 1 == team ? count : std::min<std::int64_t>(count, begin + share);
    body(begin, end);
  }
}

}  // namespace lantern::ops
