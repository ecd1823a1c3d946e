#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct DropBlockParams final : graph::OpParams {
  DropBlockParams(float p, std::int64_t absolute, float relative, int which)
      : probability(p), size_abs(absolute), size_rel(relative), layer(which) {}
  float probability = 0.5F;
  std::int64_t size_abs = 0;  ///< side of a block in cells; 0: size_rel of the smaller map side
  float size_rel = 0;
  int layer = 0;  ///< tells the masks of several layers apart
  std::string describe() const override;
};

/// Side and chance of a block at an iteration: both grow until 0.85 of the run
/// (reference/layers.md 4.10).
struct DropBlockState {
  std::int64_t side = 1;
  double chance = 0;  ///< of a cell to ask for a block
};
DropBlockState drop_block_state(const DropBlockParams& params, const RunContext& context,
                                std::int64_t h, std::int64_t w);

/// Training: per image and channel at most one block of zeros, whose corner is the cell with the
/// smallest draw below the chance (moved inside where the block would stick out); everything else
/// of the image times 1 / (1 - dropped share). Draws are addressed as in kDropoutForward. May run
/// in place.
extern const graph::OpDef kDropBlockForward;
/// diff_src (+)= diff_dst with the blocks and the factor of forward. Inputs diff_dst.
extern const graph::OpDef kDropBlockBackward;

/// The factors of one image [C, H, W] in plain order.
void drop_block_factors(const DropBlockParams& params, const RunContext& context,
                        std::int64_t images, std::int64_t image, const Shape& shape,
                        float* factors);

KernelChoice choose_drop_block_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_drop_block_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
