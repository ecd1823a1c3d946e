#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/rng.hpp"
#include "data/image.hpp"

namespace lantern::data {

/// A folder that is the working directory while it lives, and is removed afterwards.
class WorkFolder {
 public:
  WorkFolder() : before_(std::filesystem::current_path()) {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("lantern_data_") + info->test_suite_name() + "_" + info->name() + "_" +
             std::to_string(getpid()));
    std::filesystem::create_directories(path_);
    std::filesystem::current_path(path_);
  }
  ~WorkFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(path_);
  }
  const std::filesystem::path& path() const { return path_; }

  static void write(const std::filesystem::path& file, std::string_view text) {
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  static void write_png(const std::filesystem::path& file, const Image& image) {
    const std::vector<std::byte> bytes = encode_png(image);
    write(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

 private:
  std::filesystem::path before_, path_;
};

inline Image random_image(int w, int h, int c, std::uint64_t seed) {
  Rng rng(seed, "test image");
  Image image{.w = w, .h = h, .c = c, .pixels = {}};
  image.pixels.resize(image.row_bytes() * static_cast<std::size_t>(h));
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(rng.next_u32());
  return image;
}

/// Smooth picture, so that lossy coding stays close.
inline Image gradient_image(int w, int h, int c) {
  Image image{.w = w, .h = h, .c = c, .pixels = {}};
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      for (int k = 0; k < c; ++k) {
        image.pixels.push_back(
            static_cast<std::uint8_t>((x * (3 + k) / 4 + y * (4 - k) / 4) % 256));
      }
    }
  }
  return image;
}

}  // namespace lantern::data
