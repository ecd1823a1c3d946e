#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct ZeroNonmaxParams final : graph::OpParams {
  explicit ZeroNonmaxParams(std::int64_t index) : own_index(index) {}
  std::int64_t own_index = 0;  ///< of a window's own cell within the window
  std::string describe() const override;
};

/// What a pooling of stride 1 keeps where every cell that is not the maximum of its own window
/// becomes 0: dst = y where y == x, else 0. Inputs y, x of one shape and, in training, the index
/// that the pooling keeps.
extern const graph::OpDef kZeroNonmax;
/// diff_y (+)= diff_dst where the maximum of the window is its own cell. Inputs diff_dst, index.
extern const graph::OpDef kZeroNonmaxBackward;

KernelChoice choose_zero_nonmax(const graph::Op& op, const SelectContext& context);
KernelChoice choose_zero_nonmax_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
