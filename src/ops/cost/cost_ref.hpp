#pragma once

#include <cmath>
#include <cstdint>

// Reference [cost]: error and delta per element. delta is half the negative derivative of the
// error, as in the cfg format; backward ADDS scale * delta.

namespace lantern::ops::ref {

enum class CostKind : std::uint8_t { kSse, kMasked, kSmooth };

/// Truth value of an element that kMasked leaves out (exactly representable).
inline constexpr double kMaskedCost = -1234;

/// Writes error and delta (t - x where the error is square) of every element and returns the sum of
/// the errors.
template <class T>
double cost_forward(CostKind kind, std::int64_t count, const T* x, const T* truth, T* error,
                    T* delta) {
  double cost = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_masked = kind == CostKind::kMasked && truth[i] == T(kMaskedCost);
    const T e = is_masked ? T(0) : truth[i] - x[i];
    if (kind == CostKind::kSmooth && !(std::abs(e) < T(1))) {
      error[i] = T(2) * std::abs(e) - T(1);
      delta[i] = e > T(0) ? T(1) : T(-1);
      if (std::isnan(e)) delta[i] = e;
    } else {
      error[i] = e * e;
      delta[i] = e;
    }
    cost += static_cast<double>(error[i]);
  }
  return cost;
}

template <class T>
void cost_backward(std::int64_t count, T scale, const T* delta, T* diff_x) {
  for (std::int64_t i = 0; i < count; ++i) diff_x[i] += scale * delta[i];
}

}  // namespace lantern::ops::ref
