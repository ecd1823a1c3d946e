#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lantern::test {

/// What was met on the way, so that a test can tell that it tests something.
struct GraphCounts {
  std::map<std::string, std::int64_t> seen;
  std::int64_t least_ops = 1'000'000, most_ops = 0;  ///< of a mini-batch
  void add(const GraphCounts& other);
};

/// Trains random network `number` for two mini-batches and an update with everything kept, then
/// within random budgets: RAM only, with host memory, with a file, with both, on real kernels, with
/// guard pages and poison. Returns what went wrong: a fault of a plan, other bits, an arena above
/// its budget, a predicted time that the clock does not show.
std::vector<std::string> try_random_graph(std::uint64_t number, GraphCounts& counts);

}  // namespace lantern::test
