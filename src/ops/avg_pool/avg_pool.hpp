#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/conv/conv_geometry.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// dst [N, C, 1, 1] = mean of each channel of src [N, C, H, W].
extern const graph::OpDef kGlobalAvgPoolForward;
/// diff_src (+)= diff_dst / (H * W) in every cell. Inputs diff_dst.
extern const graph::OpDef kGlobalAvgPoolBackward;

struct LocalAvgPoolParams final : graph::OpParams {
  explicit LocalAvgPoolParams(const PoolGeometry& g) : geometry(g) {}
  PoolGeometry geometry;
  std::string describe() const override;
};

/// dst = mean over the cells of each window that lie inside src; 0 where there is none.
extern const graph::OpDef kLocalAvgPoolForward;
/// diff_src (+)= diff_dst / number of valid cells, in every valid cell of the window. Inputs
/// diff_dst.
extern const graph::OpDef kLocalAvgPoolBackward;

KernelChoice choose_global_avg_pool_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_global_avg_pool_backward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_local_avg_pool_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_local_avg_pool_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
