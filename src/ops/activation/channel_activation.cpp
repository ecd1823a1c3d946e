#include "ops/activation/channel_activation.hpp"

#include <algorithm>
#include <cmath>

#include "ops/parallel.hpp"

namespace lantern::ops {

namespace {

constexpr float kFloor =
    1e-4F;  // keeps an all-negative pixel finite, reference/layers.md section 2

// The numerator of the normalised value.
float numerator(Activation kind, float x, float largest) {
  switch (kind) {
    case Activation::kNormalizeChannels:
      return std::max(x, 0.0F);
    case Activation::kNormalizeChannelsSoftmax:
      return std::exp(x);
    default:
      return std::exp(x - largest);
  }
}

struct Pixel {
  float largest = 0;
  float sum = kFloor;
};

Pixel measure(Activation kind, const float* x, std::int64_t c, std::int64_t spatial) {
  Pixel pixel;
  if (kind == Activation::kNormalizeChannelsSoftmaxMaxval) {
    pixel.largest = x[0];
    for (std::int64_t k = 1; k < c; ++k) pixel.largest = std::max(pixel.largest, x[k * spatial]);
  }
  for (std::int64_t k = 0; k < c; ++k) pixel.sum += numerator(kind, x[k * spatial], pixel.largest);
  return pixel;
}

}  // namespace

void activate_channels(Activation kind, const float* x, float* y, std::int64_t n, std::int64_t c,
                       std::int64_t spatial, int threads) {
  parallel_for(n * spatial, threads, [&](std::int64_t job) {
    const std::int64_t base = job / spatial * c * spatial + job % spatial;
    const Pixel pixel = measure(kind, x + base, c, spatial);
    for (std::int64_t k = 0; k < c; ++k) {
      y[base + k * spatial] = numerator(kind, x[base + k * spatial], pixel.largest) / pixel.sum;
    }
  });
}

void channel_gradient(Activation kind, const float* x, const float* dy, float* dx, std::int64_t n,
                      std::int64_t c, std::int64_t spatial, bool accumulate, int threads) {
  parallel_for(n * spatial, threads, [&](std::int64_t job) {
    const std::int64_t base = job / spatial * c * spatial + job % spatial;
    const Pixel pixel = measure(kind, x + base, c, spatial);
    float weighted = 0;
    for (std::int64_t k = 0; k < c; ++k) {
      const std::int64_t i = base + k * spatial;
      weighted += numerator(kind, x[i], pixel.largest) / pixel.sum * dy[i];
    }
    for (std::int64_t k = 0; k < c; ++k) {
      const std::int64_t i = base + k * spatial;
      float value = 0;
      if (kind == Activation::kNormalizeChannels) {
        value = x[i] > 0 ? (dy[i] - weighted) / pixel.sum : 0.0F;
      } else {
        value = numerator(kind, x[i], pixel.largest) / pixel.sum * (dy[i] - weighted);
      }
      dx[i] = accumulate ? dx[i] + value : value;
    }
    if (kind == Activation::kNormalizeChannelsSoftmaxMaxval) {
      // The floor does not shift with the subtracted maximum, so a little gradient flows through
      // the maximum itself.
      std::int64_t k = 0;
      while (x[base + k * spatial] != pixel.largest && k + 1 < c) ++k;
      dx[base + k * spatial] -= kFloor / pixel.sum * weighted;
    }
  });
}

}  // namespace lantern::ops
