#include "core/types.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace lantern {

std::string format_bytes(Bytes bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 1_GiB) return fmt::format("{:.2f} GiB", value / static_cast<double>(1_GiB));
  if (bytes >= 1_MiB) return fmt::format("{:.1f} MiB", value / static_cast<double>(1_MiB));
  if (bytes >= 1_KiB) return fmt::format("{:.1f} KiB", value / static_cast<double>(1_KiB));
  return fmt::format("{} B", bytes);
}

Bytes size_of(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
      return 8;
    case DType::kU8:
      return 1;
  }
  return 0;
}

std::string_view to_string(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kU8:
      return "u8";
    case DType::kI32:
      return "i32";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  LANTERN_ASSERT(extents.size() <= kMaxRank, "a shape has at most five extents");
  for (const std::int64_t extent : extents) extents_[static_cast<std::size_t>(rank_++)] = extent;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis)
    text += fmt::format("{}{}", axis ? ", " : "", (*this)[axis]);
  return text + "]";
}

}  // namespace lantern
