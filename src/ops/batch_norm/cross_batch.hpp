#pragma once

#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct CrossBatchParams final : graph::OpParams {
  explicit CrossBatchParams(std::int64_t n) : values_per_channel(n) {}
  std::int64_t values_per_channel = 1;
  std::string describe() const override;
};

/// Statistics across the mini-batches of one iteration (batch_normalize=2, reference/layers.md
/// section 3). Mini-batch k (1 for the first) with mean m and q = sum of x^2 / (N - 1), at least
/// m^2: M = m / k + (1 - 1/k) M, Q likewise, v = max(0, Q - M^2). Inputs mean, biased variance [C]
/// of the mini-batch; outputs M, v [C], and the running M, Q f64 [C], which accumulate.
extern const graph::OpDef kCrossBatchMerge;

KernelChoice choose_cross_batch_merge(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
