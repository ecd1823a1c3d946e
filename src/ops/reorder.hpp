#pragma once

#include "ops/kernel.hpp"

namespace lantern::ops {

/// Copies (or adds) a tensor into another layout: blocked <-> plain data, or between the opaque
/// weight layouts.
KernelChoice choose_reorder(const Shape& shape, const Layout& from, const Layout& to,
                            bool accumulate, int threads);

}  // namespace lantern::ops
