#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "data/codec.hpp"

// Windows and OS/2 bitmaps: 1, 4, 8 bits with a palette, 16, 24, 32 bits, bit fields, run lengths.
namespace lantern::data::codec {

namespace {

/// Little-endian reads inside the file; outside is "ends too early".
class BmpFile {
 public:
  BmpFile(ByteSpan bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  std::uint32_t u8(std::size_t at) const {
    if (at >= bytes_.size()) fail(name_, "damaged BMP (ends too early)");
    return std::to_integer<std::uint32_t>(bytes_[at]);
  }
  std::uint32_t u16(std::size_t at) const { return u8(at) | u8(at + 1) << 8; }
  std::uint32_t u32(std::size_t at) const { return u16(at) | u16(at + 2) << 16; }
  std::int32_t s32(std::size_t at) const { return static_cast<std::int32_t>(u32(at)); }
  std::size_t size() const { return bytes_.size(); }
  [[noreturn]] void damaged(std::string_view what) const {
    fail(name_, std::string("damaged BMP (") + std::string(what) + ")");
  }

 private:
  ByteSpan bytes_;
  const std::string& name_;
};

using Colour = std::array<std::uint8_t, 3>;

struct Header {
  std::int64_t w = 0, h = 0;
  bool top_down = false;
  unsigned bits = 0;
  unsigned compression = 0;
  std::size_t pixels = 0;
  std::array<std::uint32_t, 3> masks{};
  std::vector<Colour> palette;
};

enum Compression : unsigned { kRgb = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3, kAlphaBitFields = 6 };

Header read_header(const BmpFile& file) {
  Header header;
  header.pixels = file.u32(10);
  const std::size_t size = file.u32(14);
  std::size_t palette_at = 14 + size;
  std::size_t colours = 0;
  const bool is_core = size == 12;
  if (is_core) {
    header.w = file.u16(18);
    header.h = file.u16(20);
    header.bits = file.u16(24);
  } else if (size >= 40 && size <= 1024) {
    header.w = file.s32(18);
    header.h = file.s32(22);
    header.bits = file.u16(28);
    header.compression = file.u32(30);
    colours = file.u32(46);
    if (header.h < 0) {
      header.top_down = true;
      header.h = -header.h;
    }
  } else {
    file.damaged("header of an unknown size");
  }
  if (header.compression == kBitFields || header.compression == kAlphaBitFields) {
    if (header.bits != 16 && header.bits != 32) file.damaged("bit fields with a wrong depth");
    for (std::size_t i = 0; i < 3; ++i) header.masks[i] = file.u32(54 + 4 * i);
    if (size == 40) palette_at += header.compression == kBitFields ? 12 : 16;
  } else if (header.bits == 16) {
    header.masks = {0x7C00, 0x03E0, 0x001F};
  } else if (header.bits == 32) {
    header.masks = {0xFF0000, 0xFF00, 0xFF};
  }
  if (header.bits <= 8) {
    if (header.bits != 1 && header.bits != 4 && header.bits != 8) file.damaged("unknown depth");
    const std::size_t most = std::size_t{1} << header.bits;
    if (colours == 0 || colours > most) colours = most;
    const std::size_t stride = is_core ? 3 : 4;
    for (std::size_t i = 0; i < colours && palette_at + stride * i + stride <= file.size(); ++i) {
      const std::size_t at = palette_at + stride * i;
      header.palette.push_back({static_cast<std::uint8_t>(file.u8(at + 2)),
                                static_cast<std::uint8_t>(file.u8(at + 1)),
                                static_cast<std::uint8_t>(file.u8(at))});
    }
    header.palette.resize(most, Colour{0, 0, 0});
  }
  return header;
}

/// A masked sample scaled to 8 bits.
std::uint8_t field(std::uint32_t value, std::uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const std::uint64_t top = mask >> shift;
  const std::uint64_t sample = (value & mask) >> shift;
  return static_cast<std::uint8_t>((sample * 255 + top / 2) / top);
}

/// Palette indices [h][w], rows from the bottom.
std::vector<std::uint8_t> read_runs(const BmpFile& file, const Header& header) {
  const auto w = static_cast<std::size_t>(header.w);
  const auto h = static_cast<std::size_t>(header.h);
  std::vector<std::uint8_t> indices(w * h, 0);
  const bool nibbles = header.compression == kRle4;
  std::size_t at = header.pixels;
  std::size_t x = 0, y = 0;
  const auto put = [&](std::uint32_t value) {
    if (x < w && y < h) indices[y * w + x] = static_cast<std::uint8_t>(value);
    ++x;
  };
  while (y < h) {
    const std::uint32_t count = file.u8(at);
    const std::uint32_t value = file.u8(at + 1);
    at += 2;
    if (count > 0) {
      for (std::uint32_t i = 0; i < count; ++i) {
        put(!nibbles ? value : (i % 2 == 0 ? value >> 4 : value & 15U));
      }
    } else if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 1) {
      break;
    } else if (value == 2) {
      x += file.u8(at);
      y += file.u8(at + 1);
      at += 2;
    } else {
      for (std::uint32_t i = 0; i < value; ++i) {
        const std::uint32_t byte = file.u8(at + (nibbles ? i / 2 : i));
        put(!nibbles ? byte : (i % 2 == 0 ? byte >> 4 : byte & 15U));
      }
      const std::size_t used = nibbles ? (value + 1) / 2 : value;
      at += used + (used & 1U);
    }
  }
  return indices;
}

}  // namespace

int decode_bmp(ByteSpan bytes, const std::string& name, int channels, Image& out) {
  const BmpFile file(bytes, name);
  const Header header = read_header(file);
  const bool runs = header.compression == kRle8 || header.compression == kRle4;
  if (runs && header.bits != (header.compression == kRle8 ? 8U : 4U))
    file.damaged("runs with a wrong depth");
  if (!runs && header.compression != kRgb && header.compression != kBitFields &&
      header.compression != kAlphaBitFields) {
    fail(name, fmt::format("BMP with compression {} is not supported", header.compression));
  }
  if (header.bits != 1 && header.bits != 4 && header.bits != 8 && header.bits != 16 &&
      header.bits != 24 && header.bits != 32) {
    file.damaged("unknown depth");
  }
  if (header.w < 1 || header.h < 1 || header.w > kMaxPixels / header.h) {
    allocate(out, header.w, header.h, 3, name);  // refuses with the reason
  }
  const std::size_t stride = (static_cast<std::size_t>(header.w) * header.bits + 31) / 32 * 4;
  // Whether the data can be there is known before the pixels are allocated.
  if (!runs && (header.pixels > file.size() ||
                stride * static_cast<std::size_t>(header.h - 1) +
                        (static_cast<std::size_t>(header.w) * header.bits + 7) / 8 >
                    file.size() - header.pixels)) {
    file.damaged("ends too early");
  }
  allocate(out, header.w, header.h, 3, name);
  std::vector<std::uint8_t> indices;
  if (runs) indices = read_runs(file, header);
  for (int y = 0; y < out.h; ++y) {
    const auto stored = static_cast<std::size_t>(header.top_down ? y : out.h - 1 - y);
    const std::size_t row = header.pixels + stride * stored;
    std::uint8_t* rgb = out.row(y);
    for (std::size_t x = 0; x < static_cast<std::size_t>(out.w); ++x, rgb += 3) {
      if (header.bits <= 8) {
        std::uint32_t index = 0;
        if (runs) {
          index = indices[stored * static_cast<std::size_t>(out.w) + x];
        } else {
          const std::size_t bit = x * header.bits;
          index =
              file.u8(row + bit / 8) >> (8 - header.bits - bit % 8) & ((1U << header.bits) - 1U);
        }
        std::copy_n(header.palette[index].begin(), 3, rgb);
      } else if (header.bits == 24) {
        for (std::size_t i = 0; i < 3; ++i)
          rgb[i] = static_cast<std::uint8_t>(file.u8(row + 3 * x + 2 - i));
      } else {
        const std::uint32_t value =
            header.bits == 16 ? file.u16(row + 2 * x) : file.u32(row + 4 * x);
        for (std::size_t i = 0; i < 3; ++i) rgb[i] = field(value, header.masks[i]);
      }
    }
  }
  if (channels == 1) grey_in_place(out);
  return 1;
}

}  // namespace lantern::data::codec
