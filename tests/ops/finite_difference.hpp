#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.hpp"

// Gradient checks by central differences in double. A test draws a direction d, takes the scalar
// L(x) = <d, f(x)>, whose gradient is J^T d, and compares it with what the backward function adds
// for `diff_dst` = d.

namespace lantern::test {

using Values = std::vector<double>;

inline Values random_values(Rng& rng, std::int64_t count, double low = -1, double high = 1) {
  Values values(static_cast<std::size_t>(count));
  for (double& v : values) {
    // Two draws: 24 bits alone would make exact ties between values likely in large tensors.
    const double u =
        static_cast<double>(rng.uniform()) + static_cast<double>(rng.uniform()) / 16777216.0;
    v = low + (high - low) * u;
  }
  return values;
}

/// A shuffle of count values that lie `gap` apart around 0: no ties, no kink of a maximum near any
/// point.
inline Values distinct_values(Rng& rng, std::int64_t count, double gap = 0.05) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = gap * (static_cast<double>(i) - static_cast<double>(count) / 2 + 0.25);
    std::swap(values[i],
              values[static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(i)))]);
  }
  return values;
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// dL/dx[i] with one Richardson extrapolation of central differences of steps h and h/2: the error
/// is O(h^4), about 1e-12 for functions of scale 1 at h = 1e-3, and the rounding error about 1e-13.
template <class Loss>
double central_difference(Values& x, std::size_t i, Loss& loss, double h = 1e-3) {
  const double at = x[i];
  const auto slope = [&](double step) {
    x[i] = at + step;
    const double high = loss();
    x[i] = at - step;
    const double low = loss();
    x[i] = at;
    return (high - low) / (2 * step);
  };
  const double coarse = slope(h);
  const double fine = slope(h / 2);
  return (4 * fine - coarse) / 3;
}

/// Compares `gradient` with the central differences of loss() in every element of x (which loss
/// reads).
template <class Loss>
void expect_gradient(std::string_view what, Values& x, const Values& gradient, Loss loss,
                     double relative = 1e-7) {
  ASSERT_EQ(x.size(), gradient.size()) << what;
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = central_difference(x, i, loss);
    // The floor covers the rounding error of a small element in a large loss.
    const double tolerance = relative * std::abs(expected) + 1e-10 * (1 + largest);
    ASSERT_NEAR(gradient[i], expected, tolerance) << what << " element " << i;
  }
}

/// What backward(out) adds to a buffer of `count` values; also checks that it adds and does not
/// overwrite.
template <class Backward>
Values added(std::int64_t count, Backward backward) {
  Values zeroed(static_cast<std::size_t>(count), 0.0);
  Values filled(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < filled.size(); ++i)
    filled[i] = 1.0 + 0.125 * static_cast<double>(i % 16);
  const Values start = filled;
  backward(zeroed.data());
  backward(filled.data());
  for (std::size_t i = 0; i < filled.size(); ++i) {
    EXPECT_NEAR(filled[i] - start[i], zeroed[i], 1e-12 * (1 + std::abs(zeroed[i])))
        << "backward does not add at " << i;
  }
  return zeroed;
}

inline void expect_near(const Values& got, const Values& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "element " << i;
  }
}

}  // namespace lantern::test
