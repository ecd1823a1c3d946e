#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct UpsampleParams final : graph::OpParams {
  UpsampleParams(std::int64_t s, bool r, float k, std::int64_t first = 0)
      : stride(s), reduce(r), scale(k), gradient_first(first) {}
  std::int64_t stride = 2;
  bool reduce = false;  ///< sum of each stride x stride block instead of enlargement
  float scale = 1.0F;
  /// Backward: dy is the slice of its tensor that begins at this channel, a multiple of 16.
  std::int64_t gradient_first = 0;
  std::string describe() const override;
};

/// Nearest-neighbour enlargement dst[y][x] = scale * src[y / s][x / s], or with `reduce` its
/// transpose (block sums).
extern const graph::OpDef kUpsampleForward;
extern const graph::OpDef kUpsampleBackward;

/// Shape of the enlarged (or reduced) map.
Shape resized(const UpsampleParams& params, const Shape& from);

/// The maps of `images` images of src [.., c, h, w] enlarged (or reduced) into dst, which is a
/// slice of channels of a tensor whose images lie `dst_stride` floats apart.
void upsample_into(const UpsampleParams& params, const Shape& from, const float* src, float* dst,
                   std::int64_t dst_stride, int block, std::int64_t images, int threads);

KernelChoice choose_upsample_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_upsample_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
