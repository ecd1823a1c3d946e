#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lantern {

/// A count of bytes; 64 bits everywhere, a single tensor may exceed 2^31 elements.
using Bytes = std::int64_t;

constexpr Bytes operator""_KiB(unsigned long long n) { return static_cast<Bytes>(n) << 10; }
constexpr Bytes operator""_MiB(unsigned long long n) { return static_cast<Bytes>(n) << 20; }
constexpr Bytes operator""_GiB(unsigned long long n) { return static_cast<Bytes>(n) << 30; }

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

/// "1.5 MiB"; sizes are powers of 1024 everywhere.
std::string format_bytes(Bytes bytes);

enum class DType : std::uint8_t { kF32, kF64, kU8, kI32 };
Bytes size_of(DType type);
std::string_view to_string(DType type);

/// Logical extents, up to five. Data tensors are [N, C, H, W]; weights [OC, IC/groups, KH, KW].
class Shape {
 public:
  static constexpr int kMaxRank = 5;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  void set(int axis, std::int64_t extent) { extents_[static_cast<std::size_t>(axis)] = extent; }
  /// Product of the extents; 1 for rank 0.
  std::int64_t elements() const;
  bool operator==(const Shape&) const = default;
  /// "[8, 16, 416, 416]"
  std::string to_string() const;

  // Names for rank 4 data tensors.
  std::int64_t n() const { return extents_[0]; }
  std::int64_t c() const { return extents_[1]; }
  std::int64_t h() const { return extents_[2]; }
  std::int64_t w() const { return extents_[3]; }

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace lantern
