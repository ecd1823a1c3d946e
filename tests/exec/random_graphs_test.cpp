// Whatever a plan does, training gives the same bits (memory.md 7, property tests): random networks
// on real kernels. LANTERN_GRAPHS=N sets how many (10,000 are the goal), LANTERN_GRAPHS_FROM the
// number of the first.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "exec/random_graphs.hpp"

namespace lantern::test {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(RandomGraphs, GiveTheSameBitsWithinAnyBudget) {
  const std::uint64_t first = number_from("LANTERN_GRAPHS_FROM", 0);
  const std::uint64_t count = number_from("LANTERN_GRAPHS", 300);
  std::atomic<std::uint64_t> next{first};
  std::mutex mutex;
  GraphCounts all;
  std::size_t failed = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&] {
    GraphCounts counts;
    for (std::uint64_t number = next++; number < first + count; number = next++) {
      const std::vector<std::string> faults = try_random_graph(number, counts);
      const std::scoped_lock lock(mutex);
      failed += faults.empty() ? 0 : 1;
      for (const std::string& fault : faults) ADD_FAILURE() << fault;
    }
    const std::scoped_lock lock(mutex);
    all.add(counts);
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = std::max(1U, std::thread::hardware_concurrency()); i > 0; --i)
      workers.emplace_back(work);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{} graphs of {} to {} ops in {:.1f} s, {} failed\n", count, all.least_ops,
             all.most_ops, seconds, failed);
  for (const auto& [what, times] : all.seen) fmt::print("{}: {}\n", what, times);
  if (count < 100) return;
  for (const char* what :
       {"buffers in place", "convolutions by gemm or reference kernels",
        "convolutions by jit kernels", "convolutions that run whole", "copies in",
        "copies to host memory", "copies to the file", "plans with chunks", "runs again",
        "sums image by image", "sums over image groups"})
    EXPECT_GT(all.seen[what], static_cast<std::int64_t>(count / 100)) << what << " are to be met";
}

}  // namespace
}  // namespace lantern::test
