#pragma once

// One tile of a Winograd convolution F(M x M, 3 x 3): M x M results from (M+2) x (M+2) sources with
// (M+2)^2 products instead of 9 M^2. Lavin and Gray 2015, arXiv:1509.09308. The functions transform
// one row or column; V is a float or a vector of them.
namespace lantern::ops::winograd {

template <int M>
struct Tile;

// Interpolation points 0, 1, -1, infinity.
template <>
struct Tile<2> {
  static constexpr int kResults = 2, kSide = 4;
  // Vector operations of a whole tile: transform of sources, of sums and of weights, with loads and
  // stores.
  static constexpr int kSourceWork = 64, kSumWork = 48, kWeightsWork = 120;

  template <typename V>
  static void source(const V* d, V* o) {
    o[0] = d[0] - d[2];
    o[1] = d[1] + d[2];
    o[2] = d[2] - d[1];
    o[3] = d[1] - d[3];
  }
  template <typename V>
  static void weights(const V* g, V* o) {
    const V outer = 0.5F * (g[0] + g[2]);
    const V middle = 0.5F * g[1];
    o[0] = g[0];
    o[1] = outer + middle;
    o[2] = outer - middle;
    o[3] = g[2];
  }
  template <typename V>
  static void sums(const V* m, V* y) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
};

// Interpolation points 0, a, -a, b, -b, infinity. All constants are exact, and rounding hurts less
// than with the 1 and 2 of the paper.
template <>
struct Tile<4> {
  static constexpr int kResults = 4, kSide = 6;
  static constexpr int kSourceWork = 250, kSumWork = 200, kWeightsWork = 300;
  static constexpr float a = 0.625F, b = 1.5F, aa = a * a, bb = b * b;

  template <typename V>
  static void source(const V* d, V* o) {
    const V even_a = d[4] - bb * d[2];
    const V odd_a = a * (d[3] - bb * d[1]);
    const V even_b = d[4] - aa * d[2];
    const V odd_b = b * (d[3] - aa * d[1]);
    o[0] = aa * bb * d[0] + (d[4] - (aa + bb) * d[2]);
    o[1] = even_a + odd_a;
    o[2] = even_a - odd_a;
    o[3] = even_b + odd_b;
    o[4] = even_b - odd_b;
    o[5] = aa * bb * d[1] + (d[5] - (aa + bb) * d[3]);
  }
  template <typename V>
  static void weights(const V* g, V* o) {
    constexpr float kZero = 1 / (aa * bb);
    constexpr float kA = 1 / (2 * aa * (aa - bb));
    constexpr float kB = 1 / (2 * bb * (bb - aa));
    const V outer_a = kA * g[0] + (kA * aa) * g[2];
    const V middle_a = (kA * a) * g[1];
    const V outer_b = kB * g[0] + (kB * bb) * g[2];
    const V middle_b = (kB * b) * g[1];
    o[0] = kZero * g[0];
    o[1] = outer_a + middle_a;
    o[2] = outer_a - middle_a;
    o[3] = outer_b + middle_b;
    o[4] = outer_b - middle_b;
    o[5] = g[2];
  }
  template <typename V>
  static void sums(const V* m, V* y) {
    const V sum_a = m[1] + m[2];
    const V difference_a = m[1] - m[2];
    const V sum_b = m[3] + m[4];
    const V difference_b = m[3] - m[4];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = a * difference_a + b * difference_b;
    y[2] = aa * sum_a + bb * sum_b;
    y[3] = (a * aa) * difference_a + ((b * bb) * difference_b + m[5]);
  }
};

}  // namespace lantern::ops::winograd
