#pragma once

#include <cstdint>

#include "ops/activation/activation.hpp"

namespace lantern::ops {

/// The activations that normalise over the channels of one pixel, on plain planes [n][c][spatial].
void activate_channels(Activation kind, const float* x, float* y, std::int64_t n, std::int64_t c,
                       std::int64_t spatial, int threads);
/// Exact Jacobian; the normalisation is recomputed from x. dx may not be dy.
void channel_gradient(Activation kind, const float* x, const float* dy, float* dx, std::int64_t n,
                      std::int64_t c, std::int64_t spatial, bool accumulate, int threads);

}  // namespace lantern::ops
