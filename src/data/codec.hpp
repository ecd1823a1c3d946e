#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/image.hpp"

// Internal to src/data: one decoder per format. Each fills `out` with options.channels channels and
// returns the EXIF orientation (1..8; 1 = as stored).
namespace lantern::data::codec {

using ByteSpan = std::span<const std::byte>;

[[noreturn]] void fail(const std::string& name, std::string_view reason);
/// Checks a claimed size against kMaxPixels and sets it; the pixels are allocated.
void allocate(Image& out, std::int64_t w, std::int64_t h, int channels, const std::string& name);
/// Interleaved RGB to the luminance of the reference, in place in memory order.
void grey_in_place(Image& rgb);

int decode_jpeg(ByteSpan bytes, const std::string& name, int channels, Image& out);
int decode_png(ByteSpan bytes, const std::string& name, int channels, Image& out);
int decode_webp(ByteSpan bytes, const std::string& name, int channels, Image& out);
int decode_bmp(ByteSpan bytes, const std::string& name, int channels, Image& out);
int decode_pnm(ByteSpan bytes, const std::string& name, int channels, Image& out);

/// Orientation (tag 274) of a TIFF structure as EXIF holds it; 1 when absent or damaged.
int exif_orientation(ByteSpan tiff);
/// Turns a stored picture upright.
void apply_orientation(Image& image, int orientation);

}  // namespace lantern::data::codec
