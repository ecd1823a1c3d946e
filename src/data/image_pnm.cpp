#include <fmt/format.h>

#include <algorithm>

#include "data/codec.hpp"

// Netpbm P1 ... P6.
namespace lantern::data::codec {

namespace {

class PnmReader {
 public:
  PnmReader(ByteSpan bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  int peek() const { return at_ < bytes_.size() ? std::to_integer<int>(bytes_[at_]) : -1; }
  int byte() {
    const int value = peek();
    if (value < 0) fail(name_, "damaged PNM (ends too early)");
    ++at_;
    return value;
  }
  void skip_blanks() {
    for (;;) {
      const int c = peek();
      if (c == '#') {
        while (peek() >= 0 && peek() != '\n') ++at_;
      } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::int64_t number() {
    skip_blanks();
    if (peek() < 0) fail(name_, "damaged PNM (ends too early)");
    std::int64_t value = -1;
    while (peek() >= '0' && peek() <= '9') {
      value = std::max<std::int64_t>(value, 0) * 10 + (byte() - '0');
      if (value > kMaxPixels) fail(name_, "damaged PNM (number too large)");
    }
    if (value < 0) fail(name_, "damaged PNM (a number is missing)");
    return value;
  }
  /// P1 digits may stand without blanks between them.
  std::int64_t bit() {
    skip_blanks();
    const int c = byte();
    if (c != '0' && c != '1') fail(name_, "damaged PNM (a bit is missing)");
    return c - '0';
  }
  std::size_t left() const { return bytes_.size() - at_; }
  void advance(std::size_t count) { at_ += std::min(count, left()); }

 private:
  ByteSpan bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
};

/// 16-bit samples keep their high byte; odd ranges are scaled.
std::uint8_t level(std::int64_t value, std::int64_t top) {
  value = std::min(value, top);
  if (top == 255) return static_cast<std::uint8_t>(value);
  if (top == 65535) return static_cast<std::uint8_t>(value >> 8);
  return static_cast<std::uint8_t>((value * 255 + top / 2) / top);
}

}  // namespace

int decode_pnm(ByteSpan bytes, const std::string& name, int channels, Image& out) {
  PnmReader reader(bytes, name);
  reader.advance(1);
  const int kind = reader.byte() - '0';
  const bool is_bits = kind == 1 || kind == 4;
  const bool is_text = kind <= 3;
  const bool is_colour = kind == 3 || kind == 6;
  const std::int64_t w = reader.number();
  const std::int64_t h = reader.number();
  const std::int64_t top = is_bits ? 1 : reader.number();
  if (top < 1 || top > 65535) fail(name, fmt::format("damaged PNM (largest value {})", top));
  if (!is_text) reader.byte();  // exactly one blank before the samples

  const std::int64_t samples_per_row = w * (is_colour ? 3 : 1);
  const std::int64_t row_bytes = is_bits ? (w + 7) / 8 : samples_per_row * (top > 255 ? 2 : 1);
  const std::int64_t least = is_text ? samples_per_row : row_bytes;  // a digit a sample at least
  if (w >= 1 && h >= 1 && w <= kMaxPixels / h &&
      least * h > static_cast<std::int64_t>(reader.left())) {
    fail(name, "damaged PNM (ends too early)");
  }
  allocate(out, w, h, is_colour ? 3 : 1, name);
  for (int y = 0; y < out.h; ++y) {
    std::uint8_t* row = out.row(y);
    int packed = 0;
    for (std::int64_t i = 0; i < samples_per_row; ++i) {
      if (kind == 1) {
        row[i] = reader.bit() != 0 ? 0 : 255;  // 1 is black
      } else if (kind == 4) {
        if (i % 8 == 0) packed = reader.byte();
        row[i] = (packed >> (7 - i % 8) & 1) != 0 ? 0 : 255;
      } else if (is_text) {
        row[i] = level(reader.number(), top);
      } else {
        const std::int64_t high = top > 255 ? reader.byte() : 0;
        row[i] = level(high << 8 | reader.byte(), top);
      }
    }
  }
  if (is_colour && channels == 1) {
    grey_in_place(out);
  } else if (!is_colour && channels == 3) {
    const std::size_t pixels = out.pixels.size();
    out.pixels.resize(3 * pixels);
    out.c = 3;
    for (std::size_t i = pixels; i-- > 0;) {  // from the end: in place
      std::fill_n(out.pixels.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, out.pixels[i]);
    }
  }
  return 1;
}

}  // namespace lantern::data::codec
