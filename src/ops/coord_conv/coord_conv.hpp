#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

inline constexpr std::int64_t kCoordinateChannels = 3;

/// dst = src with the first three channels replaced by the place of the cell: 2x/W - 1, 2y/H - 1
/// and the length of both (reference/layers.md 4.1). src [N,C,H,W]; may run in place.
/// Darknet: its kernel writes them to wrong cells (fault L31).
extern const graph::OpDef kCoordConvForward;
/// diff_src (+)= diff_dst, zero for those channels. Inputs diff_dst.
extern const graph::OpDef kCoordConvBackward;

/// The value of a coordinate channel.
float coordinate(std::int64_t channel, std::int64_t y, std::int64_t x, const Shape& shape);

KernelChoice choose_coord_conv_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_coord_conv_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
