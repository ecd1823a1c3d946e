#pragma once

#include "ops/conv/own_conv.hpp"

// Convolutions with 2, 4 or 8 channels a group, for inference with AVX-512. A channel block of 16
// holds whole groups, so a block of results reads one block of the source; the library does these
// group by group.
namespace lantern::ops::grouped {

/// Nothing for an op that had better, or must, run otherwise.
std::optional<KernelChoice> choose(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops::grouped
