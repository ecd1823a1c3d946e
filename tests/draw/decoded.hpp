#pragma once

#include <cairo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::draw {

// A decoded PNG.
class Picture {
 public:
  explicit Picture(const std::string& png) : rest_(png) {
    surface_.reset(cairo_image_surface_create_from_png_stream(
        [](void* self, unsigned char* data, unsigned int size) {
          std::string_view& rest = static_cast<Picture*>(self)->rest_;
          if (rest.size() < size) return CAIRO_STATUS_READ_ERROR;
          std::memcpy(data, rest.data(), size);
          rest.remove_prefix(size);
          return CAIRO_STATUS_SUCCESS;
        },
        this));
    EXPECT_EQ(cairo_surface_status(surface_.get()), CAIRO_STATUS_SUCCESS);
    width = cairo_image_surface_get_width(surface_.get());
    height = cairo_image_surface_get_height(surface_.get());
  }

  // Pixels (r, g, b) for which `claim` holds.
  int count(const std::function<bool(int, int, int)>& claim) const {
    int n = 0;
    const unsigned char* data = cairo_image_surface_get_data(surface_.get());
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        std::uint32_t pixel = 0;
        std::memcpy(&pixel, data + y * cairo_image_surface_get_stride(surface_.get()) + 4 * x, 4);
        n += claim(pixel >> 16 & 255, pixel >> 8 & 255, pixel & 255) ? 1 : 0;
      }
    }
    return n;
  }

  int width = 0, height = 0;

 private:
  struct Destroy {
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  };
  std::string_view rest_;
  std::unique_ptr<cairo_surface_t, Destroy> surface_;
};

// Well formed as far as our charts go: one root, tags nest, attributes are quoted, no bare & or <.
inline bool is_well_formed(std::string_view xml) {
  std::vector<std::string_view> open;
  int roots = 0;
  std::size_t i = 0;
  while (i < xml.size()) {
    if (xml[i] == '&') {
      const std::size_t end = xml.find(';', i);
      if (end == std::string_view::npos || end - i > 8) return false;
    }
    if (xml[i] != '<') {
      ++i;
      continue;
    }
    const std::size_t end = xml.find('>', i);
    if (end == std::string_view::npos) return false;
    std::string_view tag = xml.substr(i + 1, end - i - 1);
    i = end + 1;
    if (tag.empty() || tag.find('<') != std::string_view::npos) return false;
    if (tag[0] == '?' || tag[0] == '!') continue;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
      continue;
    }
    if (open.empty()) ++roots;
    if (tag.back() != '/') open.push_back(tag.substr(0, tag.find_first_of(" \n")));
  }
  return open.empty() && roots == 1;
}

}  // namespace lantern::draw
