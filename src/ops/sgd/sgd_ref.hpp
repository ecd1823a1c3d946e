#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

// Reference optimiser steps. `grad` is the NEGATIVE gradient summed over all images of the
// iteration, in a buffer of its own; it is read, never changed. batch B = net batch * subdivisions
// (* sequence).

namespace lantern::ops::ref {

struct SgdParams {
  double lr = 0.001;  ///< rate times the layer's multiplier; without 1 / loss_scale
  double momentum = 0.9;
  double decay = 0.0005;  ///< 0 for biases, batch-norm scales and shortcut weights
  double batch = 1;
  double loss_scale = 1;
  double limit = 0;  ///< > 0: u is clamped to +-limit before use (shortcut weights: 1)
  std::int64_t centered_length =
      0;               ///< > 0: grad_centr, u -= mean(u) over each run of this many values
  double reverse = 0;  ///< not 0: u becomes sign(u) (10 |u| + 1)^reverse
  double clip = 0;     ///< > 0: weights are clamped to +-clip after the step
};

/// u - its mean over each run of `length` values; a last shorter run has its own mean. length <= 0:
/// nothing.
template <class T>
void center_gradient(std::int64_t count, std::int64_t length, T* u) {
  if (length <= 0) return;
  for (std::int64_t begin = 0; begin < count; begin += length) {
    const std::int64_t end = std::min(begin + length, count);
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += static_cast<double>(u[i]);
    const T mean = static_cast<T>(sum / static_cast<double>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) u[i] -= mean;
  }
}

template <class T>
T clip_weight(T w, double clip) {
  return clip > 0 ? std::clamp(w, static_cast<T>(-clip), static_cast<T>(clip)) : w;
}

/// One step of SGD with momentum:
/// u = buffer + grad; [clamp; centre]; u -= decay B loss_scale w; [reverse]; w += lr / (B
/// loss_scale) u; buffer = momentum u; [clip]. `buffer` holds momentum times the previous u.
template <class T>
void sgd_step(const SgdParams& p, std::int64_t count, const T* grad, T* w, T* buffer) {
  for (std::int64_t i = 0; i < count; ++i) {
    buffer[i] += grad[i];
    if (p.limit > 0) {
      buffer[i] = std::clamp(buffer[i], static_cast<T>(-p.limit), static_cast<T>(p.limit));
    }
  }
  center_gradient(count, p.centered_length, buffer);
  const T decay = static_cast<T>(p.decay * p.batch * p.loss_scale);
  const T rate = static_cast<T>(p.lr / (p.batch * p.loss_scale));
  for (std::int64_t i = 0; i < count; ++i) {
    T u = buffer[i] - decay * w[i];
    if (p.reverse != 0 && u != T(0)) {
      const T size = std::pow(T(10) * std::abs(u) + T(1), static_cast<T>(p.reverse));
      u = u > T(0) ? size : -size;
    }
    w[i] = clip_weight(w[i] + rate * u, p.clip);
    buffer[i] = static_cast<T>(p.momentum) * u;
  }
}

struct AdamParams {
  double lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-6;
  double decay = 0.0005;
  double batch = 1;
  double loss_scale = 1;
  std::int64_t step = 1;  ///< t >= 1, the number of this update
  std::int64_t centered_length = 0;
  double clip = 0;
};

/// One Adam step with coupled decay: g = grad / (B loss_scale) - decay w; m = b1 m + (1 - b1) g;
/// v = b2 v + (1 - b2) g^2; w += lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps).
/// Darknet: uses the sum over the batch (eps is then relative to it) and divides the step by
/// loss_scale.
template <class T>
void adam_step(const AdamParams& p, std::int64_t count, const T* grad, T* w, T* m, T* v) {
  const double divisor = p.batch * p.loss_scale;
  const double correction1 = 1 - std::pow(p.beta1, static_cast<double>(p.step));
  const double correction2 = 1 - std::pow(p.beta2, static_cast<double>(p.step));
  const std::int64_t length = p.centered_length > 0 ? p.centered_length : count;
  for (std::int64_t begin = 0; begin < count; begin += length) {
    const std::int64_t end = std::min(begin + length, count);
    double mean = 0;
    for (std::int64_t i = begin; i < end; ++i) mean += static_cast<double>(grad[i]);
    mean = p.centered_length > 0 ? mean / static_cast<double>(end - begin) : 0.0;
    for (std::int64_t i = begin; i < end; ++i) {
      const double g =
          (static_cast<double>(grad[i]) - mean) / divisor - p.decay * static_cast<double>(w[i]);
      const double mi = p.beta1 * static_cast<double>(m[i]) + (1 - p.beta1) * g;
      const double vi = p.beta2 * static_cast<double>(v[i]) + (1 - p.beta2) * g * g;
      m[i] = static_cast<T>(mi);
      v[i] = static_cast<T>(vi);
      const double step = p.lr * (mi / correction1) / (std::sqrt(vi / correction2) + p.epsilon);
      w[i] = clip_weight(static_cast<T>(static_cast<double>(w[i]) + step), p.clip);
    }
  }
}

/// average = alpha average + (1 - alpha) w.
template <class T>
void ema_step(std::int64_t count, double alpha, const T* w, T* average) {
  for (std::int64_t i = 0; i < count; ++i) {
    average[i] = static_cast<T>(alpha) * average[i] + static_cast<T>(1 - alpha) * w[i];
  }
}

}  // namespace lantern::ops::ref
