#pragma once

#include <vector>

#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// How many mini-batches of an iteration one sequence spans (reference/training.md section 8,
/// `sequential_subdivisions`): subdivisions / sequential, where each threshold that the iteration
/// has reached multiplies `sequential` by its factor.
struct SequenceLength {
  int subdivisions = 1;
  int sequential = 1;
  std::vector<int> steps;      ///< thresholds, in iterations
  std::vector<float> factors;  ///< one a threshold
  std::int64_t at(std::int64_t iteration) const;
};

struct InitialStateParams final : graph::OpParams {
  explicit InitialStateParams(const Shape& s) : shape(s) {}
  InitialStateParams(const Shape& s, SequenceLength l) : shape(s), length(std::move(l)) {}
  Shape shape;
  std::optional<SequenceLength> length;  ///< unset: the state is never forgotten
  std::string describe() const override;
};

/// The state before the first time step. Without an input: zeros. With a carried state
/// [N,C,H,W] as input: its values, but zeros in the mini-batches where a sequence begins. No
/// gradient passes.
extern const graph::OpDef kInitialState;

KernelChoice choose_initial_state(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
