#pragma once

#include <cstdint>
#include <cstring>

namespace lantern::ops {

/// A channel block as one vector; GCC lowers it to what the CPU has (zmm, pairs of ymm, ...). Block
/// 1 is plain storage.
template <int B>
struct Vec {
  typedef float Float __attribute__((vector_size(B * 4)));
  typedef std::int32_t Int __attribute__((vector_size(B * 4)));
  typedef double Double __attribute__((vector_size(B * 8)));
  typedef std::uint8_t Byte __attribute__((vector_size(B)));
};

template <int B>
inline typename Vec<B>::Float load(const float* p) {
  typename Vec<B>::Float v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <int B>
inline void store(float* p, typename Vec<B>::Float v) {
  std::memcpy(p, &v, sizeof v);
}
template <int B>
inline typename Vec<B>::Float splat(float x) {
  typename Vec<B>::Float v = {};
  return v + x;
}
template <int B>
inline typename Vec<B>::Float select(typename Vec<B>::Int mask, typename Vec<B>::Float yes,
                                     typename Vec<B>::Float no) {
  return mask ? yes : no;
}
template <int B>
inline typename Vec<B>::Float max(typename Vec<B>::Float a, typename Vec<B>::Float b) {
  return a > b ? a : b;
}
template <int B>
inline typename Vec<B>::Float min(typename Vec<B>::Float a, typename Vec<B>::Float b) {
  return a < b ? a : b;
}

/// exp, relative error below 1e-7 on [-87.3, 88.3] (Cody-Waite reduction, degree-7 polynomial on
/// [-ln2/2, ln2/2]); 0 below, 2.2e38 above; NaN stays NaN.
template <int B>
inline typename Vec<B>::Float exp(typename Vec<B>::Float x) {
  using Float = typename Vec<B>::Float;
  using Int = typename Vec<B>::Int;
  const Float clamped = x < -87.3F ? splat<B>(-87.3F) : (x > 88.3F ? splat<B>(88.3F) : x);
  const Float magic = splat<B>(12582912.0F);  // 1.5 * 2^23: adding it rounds to the nearest integer
  const Float rounded = (clamped * 1.44269504F + magic) - magic;
  Float r = clamped - rounded * 0.693359375F;
  r = r - rounded * -2.12194440e-4F;
  Float p = splat<B>(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Int exponent = (__builtin_convertvector(rounded, Int) + 127) << 23;
  Float scale;
  std::memcpy(&scale, &exponent, sizeof scale);
  const Float result = x < -87.3F ? splat<B>(0.0F) : p * scale;
  return x == x ? result : x;
}

/// 1 / (1 + e^-x), relative error below 2e-7 for x >= -87.3; stays at 4.5e-39 for smaller x.
template <int B>
inline typename Vec<B>::Float logistic(typename Vec<B>::Float x) {
  return 1.0F / (1.0F + exp<B>(-x));
}

/// All ones in the first `used` lanes, zero beyond: keeps channel padding at zero.
template <int B>
inline typename Vec<B>::Int lane_mask(int used) {
  typename Vec<B>::Int mask;
  for (int lane = 0; lane < B; ++lane) mask[lane] = lane < used ? -1 : 0;
  return mask;
}

}  // namespace lantern::ops
