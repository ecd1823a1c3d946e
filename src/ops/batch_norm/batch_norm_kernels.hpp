#pragma once

#include <cstdint>
#include <cstring>

#include "core/types.hpp"
#include "ops/activation/activation.hpp"

// The kernel family of batch normalisation. Each kernel works on a range of images whose maps lie
// `image_stride` floats apart, so it runs on a chunk of a mini-batch and on a channel slice of a
// wider tensor as well as on a whole dense one: sums are made image by image, and adding them up is
// a step of its own.
namespace lantern::ops::batch_norm {

/// Maps of one tensor: [images][channel blocks][spatial][block], images `image_stride` floats
/// apart.
template <typename T>
struct Maps {
  T* data = nullptr;
  std::int64_t image_stride = 0;
};

/// What all kernels need to know of the layer.
struct Extents {
  std::int64_t c = 0;        ///< channels
  std::int64_t spatial = 0;  ///< positions of one map
  int block = 1;             ///< lanes of a channel block: 1, 8 or 16

  std::int64_t blocks() const { return ceil_div(c, block); }
  std::int64_t padded() const { return blocks() * block; }
  std::int64_t dense_stride() const { return padded() * spatial; }
  /// A map is summed in segments of fixed length, so that no sum depends on the thread count.
  std::int64_t segments() const { return ceil_div(spatial, kSegment); }
  static constexpr std::int64_t kSegment = 4096;
};

/// The per-channel arrays a kernel reads, plain, `c` values each.
struct Channels {
  const float* mean = nullptr;
  const float* variance = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
};

/// Two double sums for every (image, segment, channel): [images][segments][2][padded channels].
Bytes partial_bytes(const Extents& e, std::int64_t images);
/// Where the sums of an image begin.
inline double* partial_of_image(const Extents& e, double* partial, std::int64_t image) {
  return partial + image * e.segments() * 2 * e.padded();
}

/// Sums of x and x*x of images [first, last) into their place in `partial` (which has room for the
/// whole mini-batch).
void partial_statistics(const Extents& e, Maps<const float> x, std::int64_t first,
                        std::int64_t last, double* partial, int threads);
/// Adds the partial sums of `images` images in image order: mean and biased variance.
void finish_statistics(const Extents& e, const double* partial, std::int64_t images, float* mean,
                       float* variance);

/// y = act(gamma * (x - mean) / sqrt(variance + eps) + beta) [+ residual] of images [first, last).
/// `y` may be `x` or `residual`. Writes zeros into padding lanes.
void apply(const Extents& e, const Channels& channels, Maps<const float> x,
           Maps<const float> residual, Maps<float> y, Activation activation, std::int64_t first,
           std::int64_t last, int threads);

/// Sums of dz and dz * xhat of images [first, last), dz being the gradient behind the activation.
void partial_reduce(const Extents& e, const Channels& channels, Maps<const float> dy,
                    Maps<const float> x, Activation activation, std::int64_t first,
                    std::int64_t last, double* partial, int threads);
void finish_reduce(const Extents& e, const double* partial, std::int64_t images, float* sum_dz,
                   float* sum_dz_xhat);

/// dx (+)= gamma / sqrt(variance + eps) * (dz - sum_dz / count - xhat * sum_dz_xhat / count) of
/// images [first, last); `count` values a channel in the whole mini-batch. Null sums: statistics
/// were constants. `dx` may be `dy`.
void backward_apply(const Extents& e, const Channels& channels, const float* sum_dz,
                    const float* sum_dz_xhat, std::int64_t count, Maps<const float> dy,
                    Maps<const float> x, Maps<float> dx, Activation activation, bool accumulate,
                    std::int64_t first, std::int64_t last, int threads);

}  // namespace lantern::ops::batch_norm
