#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/activation/activation_ref.hpp"

// Reference batch normalisation: biased variance, epsilon 1e-5 inside the root, rolling statistics
// 0.99/0.01 with the unbiased variance (cuDNN's law). Tensors [n, c, spatial]; per-channel arrays
// [c]. Sums are taken in double.

namespace lantern::ops::ref {

inline constexpr double kBatchNormEpsilon = 1e-5;
inline constexpr double kRollingKeep = 0.99;

/// Mean and biased variance (divided by n * spatial) of every channel.
template <class T>
void batch_norm_statistics(std::int64_t n, std::int64_t c, std::int64_t spatial, const T* x,
                           T* mean, T* variance) {
  const double count = static_cast<double>(n * spatial);
  for (std::int64_t k = 0; k < c; ++k) {
    double sum = 0;
    for (std::int64_t b = 0; b < n; ++b) {
      for (std::int64_t s = 0; s < spatial; ++s) sum += x[(b * c + k) * spatial + s];
    }
    const double center = sum / count;
    double squares = 0;
    for (std::int64_t b = 0; b < n; ++b) {
      for (std::int64_t s = 0; s < spatial; ++s) {
        const double d = x[(b * c + k) * spatial + s] - center;
        squares += d * d;
      }
    }
    mean[k] = static_cast<T>(center);
    variance[k] = static_cast<T>(squares / count);
  }
}

/// rolling = 0.99 rolling + 0.01 batch; the variance is made unbiased first (count = n * spatial; a
/// count of 1 has no unbiased variance and uses the biased one, 0).
template <class T>
void batch_norm_update_rolling(std::int64_t c, std::int64_t count, const T* mean, const T* variance,
                               T* rolling_mean, T* rolling_variance) {
  const double unbias =
      count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1.0;
  for (std::int64_t k = 0; k < c; ++k) {
    rolling_mean[k] = static_cast<T>(kRollingKeep * static_cast<double>(rolling_mean[k]) +
                                     (1 - kRollingKeep) * static_cast<double>(mean[k]));
    rolling_variance[k] =
        static_cast<T>(kRollingKeep * static_cast<double>(rolling_variance[k]) +
                       (1 - kRollingKeep) * unbias * static_cast<double>(variance[k]));
  }
}

/// Value before the activation: gamma (x - mean) / sqrt(variance + 1e-5) + beta.
template <class T>
void batch_norm_affine(std::int64_t n, std::int64_t c, std::int64_t spatial, const T* x,
                       const T* mean, const T* variance, const T* gamma, const T* beta, T* pre) {
  for (std::int64_t i = 0; i < n * c * spatial; ++i) {
    const std::int64_t k = i / spatial % c;
    const T inverse = T(1) / std::sqrt(variance[k] + T(kBatchNormEpsilon));
    pre[i] = gamma[k] * ((x[i] - mean[k]) * inverse) + beta[k];
  }
}

/// y = activation(affine(x)) (+ residual, may be null). Training passes the batch statistics,
/// inference the rolling ones.
template <class T>
void batch_norm_forward(std::int64_t n, std::int64_t c, std::int64_t spatial, const T* x,
                        const T* mean, const T* variance, const T* gamma, const T* beta,
                        const T* residual, Activation activation, T* y) {
  const std::int64_t total = n * c * spatial;
  std::vector<T> pre(static_cast<std::size_t>(total));
  ref::batch_norm_affine(n, c, spatial, x, mean, variance, gamma, beta, pre.data());
  ref::activation_forward(activation, pre.data(), y, n, c, spatial);
  if (residual == nullptr) return;
  for (std::int64_t i = 0; i < total; ++i) y[i] += residual[i];
}

/// Where the statistics came from decides whether they depend on x.
enum class Statistics : std::uint8_t {
  kBatch,  ///< computed from x: the exact backward of training (and of cross-iteration batch norm,
           ///< by definition)
  kFixed,  ///< rolling values: frozen layers and adversarial passes; dx = d gamma / sqrt(variance +
           ///< eps)
};

/// Exact backward through activation, residual, scale, shift and normalisation. Adds into diff_x,
/// diff_gamma, diff_beta and diff_residual; each may be null.
template <class T>
void batch_norm_backward(std::int64_t n, std::int64_t c, std::int64_t spatial, const T* x,
                         const T* mean, const T* variance, const T* gamma, const T* beta,
                         Activation activation, Statistics statistics, const T* diff_y, T* diff_x,
                         T* diff_gamma, T* diff_beta, T* diff_residual) {
  const std::int64_t total = n * c * spatial;
  std::vector<T> pre(static_cast<std::size_t>(total));
  std::vector<T> d(static_cast<std::size_t>(total), T(0));
  ref::batch_norm_affine(n, c, spatial, x, mean, variance, gamma, beta, pre.data());
  ref::activation_backward(activation, pre.data(), diff_y, d.data(), n, c, spatial);
  if (diff_residual != nullptr) {
    for (std::int64_t i = 0; i < total; ++i) diff_residual[i] += diff_y[i];
  }
  const double count = static_cast<double>(n * spatial);
  for (std::int64_t k = 0; k < c; ++k) {
    const double inverse = 1.0 / std::sqrt(static_cast<double>(variance[k]) + kBatchNormEpsilon);
    const double center = static_cast<double>(mean[k]);
    double sum_d = 0;
    double sum_d_xh = 0;
    for (std::int64_t b = 0; b < n; ++b) {
      for (std::int64_t s = 0; s < spatial; ++s) {
        const std::int64_t i = (b * c + k) * spatial + s;
        const double di = static_cast<double>(d[static_cast<std::size_t>(i)]);
        sum_d += di;
        sum_d_xh += di * (static_cast<double>(x[i]) - center) * inverse;
      }
    }
    if (diff_gamma != nullptr) diff_gamma[k] += static_cast<T>(sum_d_xh);
    if (diff_beta != nullptr) diff_beta[k] += static_cast<T>(sum_d);
    if (diff_x == nullptr) continue;
    const bool is_batch = statistics == Statistics::kBatch;
    const double mean_d = is_batch ? sum_d / count : 0.0;
    const double mean_d_xh = is_batch ? sum_d_xh / count : 0.0;
    for (std::int64_t b = 0; b < n; ++b) {
      for (std::int64_t s = 0; s < spatial; ++s) {
        const std::int64_t i = (b * c + k) * spatial + s;
        const double xh = (static_cast<double>(x[i]) - center) * inverse;
        const double di = static_cast<double>(d[static_cast<std::size_t>(i)]);
        diff_x[i] += static_cast<T>(static_cast<double>(gamma[k]) * inverse *
                                    (di - mean_d - xh * mean_d_xh));
      }
    }
  }
}

}  // namespace lantern::ops::ref
