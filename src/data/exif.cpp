#include <algorithm>
#include <utility>

#include "data/codec.hpp"

namespace lantern::data::codec {

namespace {

/// Bounded reads of either byte order; anything outside reads as 0.
class TiffReader {
 public:
  TiffReader(ByteSpan bytes, bool little) : bytes_(bytes), little_(little) {}
  std::uint32_t u16(std::size_t at) const { return combine(at, 2); }
  std::uint32_t u32(std::size_t at) const { return combine(at, 4); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::uint32_t combine(std::size_t at, std::size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t index = little_ ? count - 1 - i : i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at + index]);
    }
    return value;
  }
  ByteSpan bytes_;
  bool little_;
};

}  // namespace

int exif_orientation(ByteSpan tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == std::byte{'I'} && tiff[1] == std::byte{'I'};
  const bool big = tiff[0] == std::byte{'M'} && tiff[1] == std::byte{'M'};
  if (!little && !big) return 1;
  const TiffReader reader(tiff, little);
  if (reader.u16(2) != 42) return 1;
  const std::size_t directory = reader.u32(4);
  const std::uint32_t entries = reader.u16(directory);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + std::size_t{12} * i;
    if (entry + 12 > reader.size()) break;
    constexpr std::uint32_t kOrientation = 274;
    if (reader.u16(entry) != kOrientation) continue;
    const std::uint32_t value = reader.u16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void apply_orientation(Image& image, int orientation) {
  if (orientation <= 1 || orientation > 8) return;
  const bool transposes = orientation >= 5;
  Image turned;
  turned.w = transposes ? image.h : image.w;
  turned.h = transposes ? image.w : image.h;
  turned.c = image.c;
  turned.pixels.resize(image.pixels.size());
  // Source coordinates of the upright pixel (x, y), EXIF 2.3 table 4 "Orientation".
  const bool mirror_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const auto c = static_cast<std::size_t>(image.c);
  for (int y = 0; y < turned.h; ++y) {
    std::uint8_t* out = turned.row(y);
    for (int x = 0; x < turned.w; ++x, out += c) {
      const int across = transposes ? y : x;
      const int down = transposes ? x : y;
      const int sx = mirror_x ? image.w - 1 - across : across;
      const int sy = mirror_y ? image.h - 1 - down : down;
      std::copy_n(image.row(sy) + static_cast<std::size_t>(sx) * c, c, out);
    }
  }
  image = std::move(turned);
}

}  // namespace lantern::data::codec
