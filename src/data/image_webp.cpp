#include <webp/decode.h>

#include <cstring>

#include "data/codec.hpp"

namespace lantern::data::codec {

namespace {

/// The EXIF chunk of the RIFF container (RIFF size WEBP, then chunks of name, size, padded
/// content).
int riff_orientation(ByteSpan bytes) {
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    std::uint32_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      size |= std::to_integer<std::uint32_t>(bytes[at + 4 + i]) << (8 * i);
    }
    const std::size_t room = bytes.size() - at - 8;
    if (size > room) break;
    if (std::memcmp(bytes.data() + at, "EXIF", 4) == 0) {
      ByteSpan content = bytes.subspan(at + 8, size);
      if (content.size() > 6 && std::memcmp(content.data(), "Exif\0\0", 6) == 0)
        content = content.subspan(6);
      return exif_orientation(content);
    }
    at += 8 + std::size_t{size} + (size & 1U);
  }
  return 1;
}

}  // namespace

int decode_webp(ByteSpan bytes, const std::string& name, int channels, Image& out) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) fail(name, "damaged WebP");
  if (features.has_animation != 0) fail(name, "animated WebP is not supported");
  allocate(out, features.width, features.height, 3, name);
  if (WebPDecodeRGBInto(data, bytes.size(), out.pixels.data(), out.pixels.size(),
                        static_cast<int>(out.row_bytes())) == nullptr) {
    fail(name, "damaged WebP (ends too early or holds wrong data)");
  }
  if (channels == 1) grey_in_place(out);
  return riff_orientation(bytes);
}

}  // namespace lantern::data::codec
