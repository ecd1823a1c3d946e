#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lantern::data {

/// 8-bit picture, interleaved [h][w][c]; c is 3 (RGB) or 1 (grey).
struct Image {
  int w = 0;
  int h = 0;
  int c = 3;
  std::vector<std::uint8_t> pixels{};

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(w) * static_cast<std::size_t>(c);
  }
  const std::uint8_t* row(int y) const {
    return pixels.data() + row_bytes() * static_cast<std::size_t>(y);
  }
  std::uint8_t* row(int y) { return pixels.data() + row_bytes() * static_cast<std::size_t>(y); }
};

struct DecodeOptions {
  int channels = 3;  ///< 3: RGB, grey repeated; 1: luminance. Anything else is refused.
  bool exif = true;  ///< Turn the picture upright by its EXIF orientation.
};

/// Pictures that claim more pixels are refused before anything is allocated.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

/// Decodes JPEG, PNG, WebP, BMP or PNM by content. Anything else, anything damaged and anything cut
/// short is an Error of kInvalidData at `name` with the reason. 16-bit samples keep their high
/// byte; alpha is dropped.
Image decode_image(std::span<const std::byte> bytes, const std::string& name,
                   const DecodeOptions& options = {});
/// The same into an existing picture, whose memory is reused.
void decode_image(std::span<const std::byte> bytes, const std::string& name,
                  const DecodeOptions& options, Image& out);

Image load_image(const std::filesystem::path& path, const DecodeOptions& options = {});
/// Same with reused memory: `file_buffer` holds the bytes of the file.
void load_image(const std::filesystem::path& path, const DecodeOptions& options,
                std::vector<std::byte>& file_buffer, Image& out);

/// `quality` 1..100; 4:2:0 chroma below 90, as is usual.
std::vector<std::byte> encode_jpeg(const Image& image, int quality = 90);
std::vector<std::byte> encode_png(const Image& image);

/// round(0.299 R + 0.587 G + 0.114 B).
Image to_grey(const Image& rgb);

}  // namespace lantern::data
