#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct UpsampleParams final : graph::OpParams {
  UpsampleParams(std::int64_t s, bool r, float k) : stride(s), reduce(r), scale(k) {}
  std::int64_t stride = 2;
  bool reduce = false;  ///< sum of each stride x stride block instead of enlargement
  float scale = 1.0F;
  std::string describe() const override;
};

/// Nearest-neighbour enlargement dst[y][x] = scale * src[y / s][x / s], or with `reduce` its
/// transpose (block sums).
extern const graph::OpDef kUpsampleForward;
extern const graph::OpDef kUpsampleBackward;

KernelChoice choose_upsample_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_upsample_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
