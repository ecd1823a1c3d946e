#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

// Reference of filters that are tied to each other by a turn, a mirror or a scale
// (reference/layers.md 4.1, "deform").

namespace lantern::ops::ref {

enum class FilterTie : std::uint8_t { kNone, kSway, kRotate, kStretch, kStretchSway };

/// Consecutive parts of the filters; part 0 is the one that the others follow.
constexpr std::int64_t tie_parts(FilterTie tie) {
  return tie == FilterTie::kNone ? 1 : tie == FilterTie::kStretchSway ? 8 : 4;
}

/// dst[y][x] = src between the four taps around (from_x, from_y); taps outside are 0. Returns the
/// weight that fell outside.
template <class T>
T sample_tap(const T* src, std::int64_t size, T from_x, T from_y, T& value) {
  const T left = std::floor(from_x);
  const T top = std::floor(from_y);
  T lost = T(0);
  value = T(0);
  for (int corner = 0; corner < 4; ++corner) {
    const T x = left + T(corner % 2);
    const T y = top + T(corner / 2);
    const T weight = (T(1) - std::abs(from_x - x)) * (T(1) - std::abs(from_y - y));
    const bool inside = x >= 0 && y >= 0 && x < T(size) && y < T(size);
    if (inside) {
      value += weight * src[static_cast<std::int64_t>(y) * size + static_cast<std::int64_t>(x)];
    } else {
      lost += weight;
    }
  }
  return lost;
}

/// dst = src turned by `degrees` about tap floor(size / 2), times size^2 / (size^2 - lost weight).
template <class T>
void turn_kernel(std::int64_t size, T degrees, const T* src, T* dst) {
  const T angle = degrees * std::numbers::pi_v<T> / T(180);
  const T cosine = std::cos(angle);
  const T sine = std::sin(angle);
  const T centre = T(size / 2);
  T lost = T(0);
  for (std::int64_t i = 0; i < size * size; ++i) {
    const T x = T(i % size) - centre;
    const T y = T(i / size) - centre;
    lost += sample_tap(src, size, centre + x * cosine + y * sine, centre - x * sine + y * cosine,
                       dst[i]);
  }
  const T area = T(size * size);
  if (lost >= area) return;
  for (std::int64_t i = 0; i < size * size; ++i) dst[i] *= area / (area - lost);
}

/// dst = src stretched about tap floor(size / 2), divided by the scale.
template <class T>
void stretch_kernel(std::int64_t size, T scale, const T* src, T* dst) {
  const T centre = T(size / 2);
  for (std::int64_t i = 0; i < size * size; ++i) {
    sample_tap(src, size, centre + (T(i % size) - centre) / scale,
               centre + (T(i / size) - centre) / scale, dst[i]);
    dst[i] /= scale;
  }
}

/// One kernel [size][size] of part 0 as part `part` has it, or back.
template <class T>
void tie_kernel(FilterTie tie, T angle, std::int64_t part, bool back, std::int64_t size,
                const T* src, T* dst) {
  constexpr T kStretch[] = {T(1), T(0.65), T(0.8), T(1.3)};
  constexpr T kStretchSway[] = {T(1), T(0.65), T(0.8), T(1.2), T(1.4)};
  const auto stretch = [&](T scale) {
    stretch_kernel(size, back ? T(1) / scale : scale, src, dst);
  };
  const auto sway = [&](std::int64_t which) {  // 1: +angle, 2: -angle, 3: mirror
    if (which == 3) {
      for (std::int64_t i = 0; i < size * size; ++i) dst[i] = src[i + size - 1 - 2 * (i % size)];
    } else {
      turn_kernel(size, (which == 1) == back ? -angle : angle, src, dst);
    }
  };
  if (part == 0 || tie == FilterTie::kNone) {
    for (std::int64_t i = 0; i < size * size; ++i) dst[i] = src[i];
  } else if (tie == FilterTie::kRotate) {
    for (std::int64_t i = 0; i < size * size; ++i) {
      const std::int64_t x = i % size;
      const std::int64_t y = i / size;
      const std::int64_t last = size - 1;
      const std::int64_t to = part == 1   ? x * size + last - y  // clockwise
                              : part == 2 ? size * size - 1 - i
                                          : (last - x) * size + y;
      if (back) {
        dst[i] = src[to];
      } else {
        dst[to] = src[i];
      }
    }
  } else if (tie == FilterTie::kSway) {
    sway(part);
  } else if (tie == FilterTie::kStretch) {
    stretch(kStretch[part]);
  } else if (part <= 4) {
    stretch(kStretchSway[part]);
  } else {
    sway(part - 4);
  }
}

}  // namespace lantern::ops::ref
