#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace lantern::ops {

/// body(begin, end), compiled once for every body. Two inlined copies of the same arithmetic may
/// differ in the last bit (a product and a sum may or may not become one instruction), and the
/// number of jobs or threads would decide which copy runs.
template <typename Body>
#if !defined(__clang__)
[[gnu::noclone]]
#endif
[[gnu::noinline]] void
call_once_compiled(const Body& body, std::int64_t begin, std::int64_t end) {
  body(begin, end);
}

/// Runs body(job) for job in [0, jobs) on the compute team, split statically into contiguous
/// ranges. What a job computes must not depend on which thread runs it.
template <typename Body>
void parallel_for(std::int64_t jobs, int threads, const Body& body) {
  const auto range = [&body](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) body(job);
  };
  if (threads <= 1 || jobs <= 1) {
    call_once_compiled(range, 0, jobs);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t rank = omp_get_thread_num();
    const std::int64_t share = jobs / team;
    const std::int64_t more = jobs % team;  // the first ranges are one longer
    const std::int64_t begin = rank * share + std::min(rank, more);
    call_once_compiled(range, begin, begin + share + (rank < more ? 1 : 0));
  }
}

/// Runs body(begin, end) over [0, count) in equal ranges whose borders are multiples of 16.
template <typename Body>
void parallel_ranges(std::int64_t count, int threads, const Body& body) {
  constexpr std::int64_t kSmall = 8192;
  if (threads <= 1 || count < kSmall) {
    call_once_compiled(body, 0, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t share = (count / team + 15) / 16 * 16;
    const std::int64_t begin = std::min<std::int64_t>(count, share * omp_get_thread_num());
    const std::int64_t end =
        omp_get_thread_num() + 1 == team ? count : std::min<std::int64_t>(count, begin + share);
    call_once_compiled(body, begin, end);
  }
}

}  // namespace lantern::ops
