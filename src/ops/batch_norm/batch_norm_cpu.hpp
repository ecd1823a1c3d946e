#pragma once

#include "ops/kernel.hpp"

namespace lantern::ops {

KernelChoice choose_batch_norm_statistics(const graph::Op& op, const SelectContext& context);
KernelChoice choose_batch_norm_apply(const graph::Op& op, const SelectContext& context);
KernelChoice choose_batch_norm_backward_reduce(const graph::Op& op, const SelectContext& context);
KernelChoice choose_batch_norm_backward_apply(const graph::Op& op, const SelectContext& context);
KernelChoice choose_batch_norm_rolling(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
