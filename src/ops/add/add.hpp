#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// dst = inputs[0] + all others. The result has the shape of inputs[0]; a source with other
/// channels adds its first min(C), one with another map size is added on the classic stride
/// (reference/layers.md 4.6, "Ours").
extern const graph::OpDef kAddForward;
/// diff_src (+)= transpose of the strided add. Inputs diff_dst.
extern const graph::OpDef kAddBackward;

KernelChoice choose_add_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_add_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
