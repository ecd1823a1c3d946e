#pragma once

#include "ops/kernel.hpp"

namespace lantern::ops {

KernelChoice choose_conv_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_conv_backward_data(const graph::Op& op, const SelectContext& context);
KernelChoice choose_conv_backward_weights(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
