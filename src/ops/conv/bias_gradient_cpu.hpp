#pragma once

#include "ops/kernel.hpp"

namespace lantern::ops {

KernelChoice choose_bias_gradient(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
