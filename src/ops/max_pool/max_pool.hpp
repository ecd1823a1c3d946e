#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/conv/conv_geometry.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct PoolParams final : graph::OpParams {
  PoolParams(const PoolGeometry& g, bool index) : geometry(g), keeps_index(index) {}
  PoolGeometry geometry;
  bool keeps_index =
      false;  ///< training: a second output holds the index of the maximum inside its window
  std::string describe() const override;
};

/// dst = largest value of each window; cells outside the map are ignored, ties go to the first in
/// row-major order. src [N,C,H,W] -> dst [N,C,OH,OW][, index u8 [N,C,OH,OW]] (i32 when the window
/// has more than 256 cells).
extern const graph::OpDef kMaxPoolForward;
/// diff_src (+)= diff_dst at the maximum of each window. Inputs diff_dst, index.
extern const graph::OpDef kMaxPoolBackward;

KernelChoice choose_max_pool_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_max_pool_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
