#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "layers/network.hpp"
#include "plan/planner.hpp"

namespace lantern::plan::test {

/// A stock network as it would be trained on an RTX 2070 with host memory, by the analytic costs.
struct StockNet {
  std::string name;  ///< the cfg is tests/data/cfg/NAME.cfg
  std::int64_t mini_batch = 1;
};
inline void PrintTo(const StockNet& net, std::ostream* out) { *out << net.name; }
std::vector<StockNet> stock_nets();

DeviceSpec stock_device();

/// A stock network made ready to plan: no memory is taken.
class StockPlanner {
 public:
  explicit StockPlanner(const StockNet& net);

  const graph::Selected& selected() const { return selected_; }
  const Program& unlimited() const { return unlimited_; }
  Bytes least() const { return least_; }
  Program plan(Bytes memory) const;
  /// A number that tells kernels apart: other instruction sets have others, and other plans.
  std::uint32_t kernels() const;

 private:
  graph::Selected selected_;
  PlanOptions options_;
  Program unlimited_;
  Bytes least_ = 0;
};

/// A plan of the corpus: what was found at the time when it was written.
struct StockRecord {
  Bytes memory = 0;
  double seconds = 0;
  Bytes peak = 0, host = 0;
  int chunks = 1;
};
struct StockCorpus {
  std::uint32_t kernels = 0;
  Bytes least = 0;
  std::vector<StockRecord> plans;
};
/// tests/data/plans/NAME.txt; empty when there is none.
StockCorpus read_corpus(const StockNet& net);
void write_corpus(const StockNet& net, const StockCorpus& corpus);

}  // namespace lantern::plan::test
