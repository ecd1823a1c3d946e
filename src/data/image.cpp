#include "data/image.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "core/error.hpp"
#include "core/file.hpp"
#include "data/codec.hpp"

namespace lantern::data {

namespace codec {

void fail(const std::string& name, std::string_view reason) {
  throw Error(ErrorCode::kInvalidData, name, "{}", reason);
}

void allocate(Image& out, std::int64_t w, std::int64_t h, int channels, const std::string& name) {
  if (w < 1 || h < 1) fail(name, fmt::format("picture of {}x{} pixels", w, h));
  if (w > kMaxPixels || h > kMaxPixels || w * h > kMaxPixels) {
    fail(name, fmt::format("claims {}x{} pixels, more than the limit of {}", w, h, kMaxPixels));
  }
  out.w = static_cast<int>(w);
  out.h = static_cast<int>(h);
  out.c = channels;
  out.pixels.resize(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) *
                    static_cast<std::size_t>(channels));
}

void grey_in_place(Image& rgb) {
  const std::size_t pixels = static_cast<std::size_t>(rgb.w) * static_cast<std::size_t>(rgb.h);
  std::uint8_t* p = rgb.pixels.data();
  for (std::size_t i = 0; i < pixels; ++i) {
    const int sum = 299 * p[3 * i] + 587 * p[3 * i + 1] + 114 * p[3 * i + 2];
    p[i] = static_cast<std::uint8_t>((sum + 500) / 1000);
  }
  rgb.c = 1;
  rgb.pixels.resize(pixels);
}

}  // namespace codec

namespace {

enum class Format { kJpeg, kPng, kWebp, kBmp, kPnm, kOther };

bool starts(std::string_view text, std::string_view magic, std::size_t at = 0) {
  return text.size() >= at + magic.size() && text.substr(at, magic.size()) == magic;
}

Format sniff(std::string_view text) {
  using namespace std::string_view_literals;
  if (starts(text, "\xFF\xD8\xFF"sv)) return Format::kJpeg;
  if (starts(text, "\x89PNG\r\n\x1A\n"sv)) return Format::kPng;
  if (starts(text, "RIFF"sv) && starts(text, "WEBP"sv, 8)) return Format::kWebp;
  if (starts(text, "BM"sv)) return Format::kBmp;
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '6' &&
      (text[2] == ' ' || text[2] == '\n' || text[2] == '\r' || text[2] == '\t' || text[2] == '#')) {
    return Format::kPnm;
  }
  return Format::kOther;
}

/// What a file is that we do not read, so that people know what to convert.
std::string name_of_other(std::string_view text) {
  using namespace std::string_view_literals;
  struct Known {
    std::string_view magic;
    std::size_t at;
    std::string_view what;
  };
  static constexpr std::array kKnown{
      Known{"GIF8"sv, 0, "GIF"},
      Known{"II*\0"sv, 0, "TIFF"},
      Known{"MM\0*"sv, 0, "TIFF"},
      Known{"II+\0"sv, 0, "BigTIFF"},
      Known{"MM\0+"sv, 0, "BigTIFF"},
      Known{"8BPS"sv, 0, "Photoshop PSD"},
      Known{"ftypavif"sv, 4, "AVIF"},
      Known{"ftypavis"sv, 4, "AVIF"},
      Known{"ftyphei"sv, 4, "HEIC"},
      Known{"ftyphev"sv, 4, "HEIC"},
      Known{"ftypmif1"sv, 4, "HEIF"},
      Known{"ftyp"sv, 4, "MP4 or QuickTime video"},
      Known{"\0\0\0\x0CJXL "sv, 0, "JPEG XL"},
      Known{"\xFF\x0A"sv, 0, "JPEG XL"},
      Known{"\0\0\0\x0CjP  "sv, 0, "JPEG 2000"},
      Known{"\xFF\x4F\xFF\x51"sv, 0, "JPEG 2000"},
      Known{"\x76\x2F\x31\x01"sv, 0, "OpenEXR"},
      Known{"#?RADIANCE"sv, 0, "Radiance HDR"},
      Known{"\0\0\1\0"sv, 0, "ICO"},
      Known{"P7\n"sv, 0, "PAM"},
      Known{"RIFF"sv, 0, "RIFF (AVI or WAV)"},
      Known{"%PDF"sv, 0, "PDF"},
      Known{"PK\x03\x04"sv, 0, "ZIP"},
      Known{"\x1F\x8B"sv, 0, "gzip"},
  };
  for (const Known& known : kKnown) {
    if (starts(text, known.magic, known.at)) return fmt::format("{} is not supported", known.what);
  }
  constexpr std::string_view kTgaFooter = "TRUEVISION-XFILE.";
  if (text.size() > 26 && text.substr(text.size() - 18, 17) == kTgaFooter)
    return "TGA is not supported";
  if (text.starts_with("version https://git-lfs")) {
    return "not an image but a Git LFS pointer: fetch the file itself (git lfs pull)";
  }
  bool is_text = true;
  for (const char c : text.substr(0, 512)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') is_text = false;
  }
  if (is_text) {
    const bool is_markup = text.substr(0, 64).find('<') != std::string_view::npos;
    return is_markup ? "not an image (HTML, XML or SVG text)" : "not an image (text)";
  }
  return "not an image of a known kind";
}

}  // namespace

void decode_image(std::span<const std::byte> bytes, const std::string& name,
                  const DecodeOptions& options, Image& out) {
  if (options.channels != 1 && options.channels != 3) {
    throw Error(ErrorCode::kInvalidConfig, name,
                "a picture has 3 channels or 1, the network wants {}", options.channels);
  }
  if (bytes.empty()) codec::fail(name, "is empty (0 bytes)");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  int orientation = 1;
  switch (sniff(text)) {
    case Format::kJpeg:
      orientation = codec::decode_jpeg(bytes, name, options.channels, out);
      break;
    case Format::kPng:
      orientation = codec::decode_png(bytes, name, options.channels, out);
      break;
    case Format::kWebp:
      orientation = codec::decode_webp(bytes, name, options.channels, out);
      break;
    case Format::kBmp:
      orientation = codec::decode_bmp(bytes, name, options.channels, out);
      break;
    case Format::kPnm:
      orientation = codec::decode_pnm(bytes, name, options.channels, out);
      break;
    case Format::kOther:
      codec::fail(name, name_of_other(text) + "; JPEG, PNG, WebP, BMP, PPM and PGM are read");
  }
  if (options.exif) codec::apply_orientation(out, orientation);
}

Image decode_image(std::span<const std::byte> bytes, const std::string& name,
                   const DecodeOptions& options) {
  Image image;
  decode_image(bytes, name, options, image);
  return image;
}

void load_image(const std::filesystem::path& path, const DecodeOptions& options,
                std::vector<std::byte>& file_buffer, Image& out) {
  constexpr std::uintmax_t kMaxFile = std::uintmax_t{1} << 31;
  // A pipe would be waited for, and an image may be read more than once.
  if (const std::string_view kind = kind_unless_file(path); !kind.empty())
    codec::fail(path.string(), fmt::format("is {}, an image file is needed", kind));
  std::error_code code;
  if (const std::uintmax_t size = std::filesystem::file_size(path, code); !code && size > kMaxFile)
    codec::fail(path.string(), "is larger than 2 GiB");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr)
    codec::fail(path.string(), fmt::format("cannot be opened: {}", std::strerror(errno)));
  std::size_t used = 0;
  if (file_buffer.size() < 65536) file_buffer.resize(65536);
  for (;;) {
    const std::size_t count =
        std::fread(file_buffer.data() + used, 1, file_buffer.size() - used, file.get());
    used += count;
    if (used < file_buffer.size()) break;
    if (used > kMaxFile) codec::fail(path.string(), "is larger than 2 GiB");
    file_buffer.resize(2 * file_buffer.size());
  }
  if (std::ferror(file.get()) != 0) codec::fail(path.string(), "cannot be read to its end");
  decode_image(std::span(file_buffer).first(used), path.string(), options, out);
}

Image load_image(const std::filesystem::path& path, const DecodeOptions& options) {
  std::vector<std::byte> buffer;
  Image image;
  load_image(path, options, buffer, image);
  return image;
}

Image to_grey(const Image& rgb) {
  Image grey = rgb;
  if (grey.c == 3) codec::grey_in_place(grey);
  return grey;
}

}  // namespace lantern::data
