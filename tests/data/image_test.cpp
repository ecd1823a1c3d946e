#include "data/image.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <sstream>

#include "core/error.hpp"
#include "core/file.hpp"
#include "test_files.hpp"

namespace lantern::data {
namespace {

using ::testing::HasSubstr;

std::filesystem::path odd(const std::string& name) {
  return std::filesystem::path(LANTERN_TEST_DATA) / "images" / "odd" / name;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string message_of(const std::string& bytes, const std::string& name = "x.jpg") {
  try {
    decode_image(bytes_of(bytes), name);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
    EXPECT_EQ(error.where(), name);
    return error.what();
  }
  return "decoded";
}

struct Expected {
  int w = 0, h = 0;
  double mean[3] = {};
  int corners[4][3] = {};
};

std::map<std::string, Expected> expectations() {
  std::map<std::string, Expected> all;
  std::istringstream text(read_file(odd("expected.txt")));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string name;
    Expected e;
    fields >> name >> e.w >> e.h;
    for (double& value : e.mean) fields >> value;
    for (auto& corner : e.corners) {
      for (int& value : corner) fields >> value;
    }
    EXPECT_TRUE(fields) << line;
    all[name] = e;
  }
  return all;
}

double mean_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.pixels.size(), b.pixels.size()); ++i) {
    sum += std::abs(a.pixels[i] - b.pixels[i]);
  }
  return sum / static_cast<double>(a.pixels.size());
}

TEST(DecodeImage, GivesSizeMeanAndCornersOfEveryGoodFile) {
  int tested = 0;
  for (const auto& [name, want] : expectations()) {
    const std::string ending = std::filesystem::path(name).extension();
    if (ending == ".gif" || ending == ".tga" || ending == ".tiff" || name.starts_with("truncated"))
      continue;
    SCOPED_TRACE(name);
    ++tested;
    const Image image = load_image(odd(name));
    EXPECT_EQ(image.w, want.w);
    EXPECT_EQ(image.h, want.h);
    ASSERT_EQ(image.c, 3);
    const bool is_cmyk = name == "cmyk.jpg";
    const bool is_lossy = ending == ".jpg" || name == "jpeg-named.png" || name == "lossy.webp";
    const double mean_tolerance =
        is_cmyk ? 15 : (is_lossy && name != "png-named.jpg" ? 1.5 : 0.006);
    const int tolerance = is_cmyk ? 20 : (is_lossy && name != "png-named.jpg" ? 8 : 0);
    double sum[3] = {};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) sum[i % 3] += image.pixels[i];
    for (int c = 0; c < 3; ++c) {
      // Pillow scales 16-bit grey otherwise.
      const double slack = name == "gray16.png" ? 1.0 : mean_tolerance;
      EXPECT_NEAR(sum[c] / (static_cast<double>(image.w) * image.h), want.mean[c], slack);
    }
    const int xs[] = {0, image.w - 1, 0, image.w - 1};
    const int ys[] = {0, 0, image.h - 1, image.h - 1};
    for (int k = 0; k < 4; ++k) {
      for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(image.row(ys[k])[xs[k] * 3 + c], want.corners[k][c],
                    name == "gray16.png" ? 1 : tolerance);
      }
    }
  }
  EXPECT_GE(tested, 35);
}

TEST(DecodeImage, TurnsEveryOrientationUpright) {
  const Image plain = load_image(odd("plain.jpg"));
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const auto path = odd("exif-orientation-" + std::to_string(orientation) + ".jpg");
    const Image turned = load_image(path);
    ASSERT_EQ(turned.w, 192) << orientation;
    EXPECT_LT(mean_difference(turned, plain), 3) << orientation;
    const Image stored = load_image(path, {.exif = false});
    EXPECT_EQ(stored.w, orientation >= 5 ? 144 : 192) << orientation;
  }
}

TEST(DecodeImage, HighByteOfSixteenBits) {
  EXPECT_EQ(load_image(odd("rgb16.png")).pixels, load_image(odd("rgb24.bmp")).pixels);
}

TEST(DecodeImage, DropsAlphaWithoutMixingColours) {
  EXPECT_EQ(load_image(odd("rgba.png")).pixels, load_image(odd("rgb24.bmp")).pixels);
}

TEST(DecodeImage, ContentDecidesNotTheEnding) {
  EXPECT_EQ(load_image(odd("png-named.jpg")).pixels, load_image(odd("rgb24.bmp")).pixels);
  EXPECT_EQ(load_image(odd("jpeg-named.png")).pixels, load_image(odd("plain.jpg")).pixels);
  EXPECT_EQ(load_image(odd("trailing-garbage.jpg")).pixels, load_image(odd("plain.jpg")).pixels);
}

TEST(DecodeImage, GreyFollowsTheFormulaAndGreyFilesRepeat) {
  const Image colour = load_image(odd("rgb24.bmp"));
  const Image grey = load_image(odd("rgb24.bmp"), {.channels = 1});
  ASSERT_EQ(grey.c, 1);
  ASSERT_EQ(grey.pixels.size() * 3, colour.pixels.size());
  for (std::size_t i = 0; i < grey.pixels.size(); ++i) {
    const double want = 0.299 * colour.pixels[3 * i] + 0.587 * colour.pixels[3 * i + 1] +
                        0.114 * colour.pixels[3 * i + 2];
    ASSERT_NEAR(grey.pixels[i], want, 0.5001);
  }
  const Image grey_file = load_image(odd("gray.png"), {.channels = 1});
  const Image repeated = load_image(odd("gray.png"));
  for (std::size_t i = 0; i < grey_file.pixels.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(repeated.pixels[3 * i + c], grey_file.pixels[i]);
  }
  // The luminance plane of a JPEG is that of its colours up to rounding.
  EXPECT_LT(mean_difference(load_image(odd("plain.jpg"), {.channels = 1}),
                            to_grey(load_image(odd("plain.jpg")))),
            1);
}

TEST(DecodeImage, RefusesDamagedFilesWithNameAndReason) {
  const std::map<std::string, std::string> reasons = {
      {"zero-byte.jpg", "is empty (0 bytes)"}, {"zero-byte.png", "is empty (0 bytes)"},
      {"text-as.jpg", "not an image"},         {"truncated-header.jpg", "damaged JPEG"},
      {"truncated-half.jpg", "damaged JPEG"},  {"truncated-half.png", "damaged PNG"},
      {"bad-crc.png", "damaged PNG"},          {"huge-header.png", "60000x60000"},
      {"still.gif", "GIF is not supported"},   {"lzw.tiff", "TIFF is not supported"},
      {"rgb24.tga", "TGA is not supported"},   {"missing.jpg", "cannot be opened"}};
  for (const auto& [name, reason] : reasons) {
    try {
      load_image(odd(name));
      ADD_FAILURE() << name << " was decoded";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
      EXPECT_THAT(error.what(), HasSubstr(name));
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  }
  EXPECT_THROW(load_image(odd("")), Error);
  EXPECT_THROW(load_image(odd("plain.jpg"), {.channels = 6}), Error);
}

TEST(DecodeImage, NamesWhatItDoesNotRead) {
  EXPECT_THAT(message_of("<!DOCTYPE html><html></html>"), HasSubstr("HTML"));
  EXPECT_THAT(message_of("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS"));
  EXPECT_THAT(message_of(std::string("\0\0\0\x1C"
                                     "ftypheic",
                                     12)),
              HasSubstr("HEIC"));
}

TEST(DecodeImage, EveryCutOfEveryFormatIsAnErrorOrAPicture) {
  for (const std::string name :
       {"plain.jpg", "palette.png", "palette8.bmp", "lossy.webp", "cmyk.jpg", "rgb.ppm",
        "exif-orientation-6.jpg", "progressive.jpg"}) {
    const std::string whole = read_file(odd(name));
    for (std::size_t size = 0; size + 16 < whole.size(); size += 1 + whole.size() / 61) {
      EXPECT_NE(message_of(whole.substr(0, size)), "decoded") << name << " cut to " << size;
    }
  }
}

TEST(DecodeImage, FlippedBytesNeverCrash) {
  Rng rng(7, "flips");
  for (const std::string name : {"plain.jpg", "palette.png", "palette8.bmp", "lossless.webp",
                                 "rgb.ppm", "7x5.png", "exif-orientation-6.jpg", "1x1.jpg"}) {
    const std::string whole = read_file(odd(name));
    for (int round = 0; round < 60; ++round) {
      std::string broken = whole;
      for (int k = 0; k < 4; ++k) {
        const auto reach = static_cast<std::int64_t>(
            round % 2 == 0 ? std::min<std::size_t>(64, whole.size()) : whole.size());
        broken[static_cast<std::size_t>(rng.uniform_int(0, reach - 1))] =
            static_cast<char>(rng.next_u32());
      }
      try {
        const Image image = decode_image(bytes_of(broken), name);
        EXPECT_EQ(image.pixels.size(), image.row_bytes() * static_cast<std::size_t>(image.h));
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(name));
      }
    }
  }
}

std::string le32(std::uint32_t v) {
  std::string text;
  for (int i = 0; i < 4; ++i) text.push_back(static_cast<char>(v >> (8 * i)));
  return text;
}
std::string le16(std::uint32_t v) { return le32(v).substr(0, 2); }

std::string bmp(int w, int h, unsigned bits, unsigned compression, const std::string& between,
                const std::string& data) {
  return "BM" + le32(0) + le32(0) + le32(static_cast<std::uint32_t>(54 + between.size())) +
         le32(40) + le32(static_cast<std::uint32_t>(w)) + le32(static_cast<std::uint32_t>(h)) +
         le16(1) + le16(bits) + le32(compression) + std::string(20, '\0') + between + data;
}

TEST(DecodeImage, ReadsBitmapKinds) {
  const std::string palette = std::string("\0\0\0\0", 4) + std::string("\x10\x20\x30\0", 4);
  // 1 bit, two rows stored from the bottom: "10" and "01".
  Image image = decode_image(
      bytes_of(bmp(2, 2, 1, 0, palette, std::string("\x80\0\0\0\x40\0\0\0", 8))), "a.bmp");
  EXPECT_EQ(image.pixels,
            (std::vector<std::uint8_t>{0, 0, 0, 0x30, 0x20, 0x10, 0x30, 0x20, 0x10, 0, 0, 0}));
  // The same from the top.
  image = decode_image(bytes_of(bmp(2, -2, 1, 0, palette, std::string("\x80\0\0\0\x40\0\0\0", 8))),
                       "a.bmp");
  EXPECT_EQ(image.pixels[0], 0x30);
  // 5-6-5 bit fields: pure green.
  const std::string masks = le32(0xF800) + le32(0x07E0) + le32(0x001F);
  image = decode_image(bytes_of(bmp(1, 1, 16, 3, masks, std::string("\xE0\x07\0\0", 4))), "a.bmp");
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{0, 255, 0}));
  // Run lengths: three of entry 1, end of bitmap.
  std::string table = palette;
  table.resize(1024, '\0');
  image = decode_image(bytes_of(bmp(3, 1, 8, 1, table, std::string("\3\1\0\1", 4))), "a.bmp");
  EXPECT_EQ(image.pixels[6], 0x30);
  EXPECT_THAT(message_of(bmp(10000, 10000, 24, 0, "", "abc")), HasSubstr("damaged BMP"));
}

TEST(DecodeImage, ReadsPnmKinds) {
  EXPECT_EQ(decode_image(bytes_of("P2 # grey\n2 1 255\n7 200"), "a.pgm", {.channels = 1}).pixels,
            (std::vector<std::uint8_t>{7, 200}));
  EXPECT_EQ(decode_image(bytes_of("P3\n1 1\n255\n1 2 3\n"), "a.ppm").pixels,
            (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(decode_image(bytes_of("P1\n3 1\n101"), "a.pbm", {.channels = 1}).pixels,
            (std::vector<std::uint8_t>{0, 255, 0}));
  EXPECT_EQ(decode_image(bytes_of("P5\n1 1\n65535\n\xAB\xFF"), "a.pgm", {.channels = 1}).pixels,
            (std::vector<std::uint8_t>{0xAB}));
  EXPECT_EQ(decode_image(bytes_of("P5\n2 1\n255\nab"), "a.pgm").pixels,
            (std::vector<std::uint8_t>{'a', 'a', 'a', 'b', 'b', 'b'}));
  EXPECT_THAT(message_of("P6\n99999 99999\n255\n"), HasSubstr("99999x99999"));
  EXPECT_THAT(message_of("P6\n10 10\n255\nabc"), HasSubstr("ends too early"));
}

TEST(EncodeImage, RoundTrips) {
  const Image image = gradient_image(65, 33, 3);
  EXPECT_EQ(decode_image(encode_png(image), "a.png").pixels, image.pixels);
  EXPECT_LT(mean_difference(decode_image(encode_jpeg(image, 95), "a.jpg"), image), 3);
  const Image grey = gradient_image(20, 10, 1);
  EXPECT_EQ(decode_image(encode_png(grey), "a.png", {.channels = 1}).pixels, grey.pixels);
  EXPECT_LT(mean_difference(decode_image(encode_jpeg(grey, 95), "a.jpg", {.channels = 1}), grey),
            3);
}

}  // namespace
}  // namespace lantern::data
