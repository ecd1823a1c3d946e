#include <algorithm>
#include <cstdlib>
#include <new>

#include "api/c_errors.hpp"
#include "core/error.hpp"
#include "data/image.hpp"
#include "data/lists.hpp"
#include "data/resize.hpp"
#include "lantern/lantern.h"

// Pictures and names of the C interface.

namespace lantern::api {

namespace {

lantern_image make(int w, int h, int c) {
  if (w < 1 || h < 1 || c < 1 || std::int64_t{w} * h > data::kMaxPixels || c > 1024) {
    throw Error(ErrorCode::kUsage, "image", "cannot be {} x {} of {} channels", w, h, c);
  }
  const std::size_t count =
      static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * static_cast<std::size_t>(c);
  auto* values = static_cast<float*>(std::calloc(count, sizeof(float)));
  if (values == nullptr) throw std::bad_alloc();
  return {w, h, c, values};
}

std::size_t count_of(const lantern_image& image) {
  return static_cast<std::size_t>(image.w) * static_cast<std::size_t>(image.h) *
         static_cast<std::size_t>(image.c);
}

void check(const lantern_image& image) {
  require(image.data, "image");
  if (image.w < 1 || image.h < 1 || image.c < 1) {
    throw Error(ErrorCode::kUsage, "image", "is {} x {} of {} channels", image.w, image.h, image.c);
  }
}

data::Planes planes_of(const lantern_image& image) {
  check(image);
  return {.w = image.w,
          .h = image.h,
          .c = image.c,
          .data = std::vector<float>(image.data, image.data + count_of(image))};
}

lantern_image image_of(const data::Planes& planes) {
  const lantern_image image = make(planes.w, planes.h, planes.c);
  std::ranges::copy(planes.data, image.data);
  return image;
}

void check_size(int w, int h) {
  if (w < 1 || h < 1 || std::int64_t{w} * h > data::kMaxPixels) {
    throw Error(ErrorCode::kUsage, "size", "is {} x {}", w, h);
  }
}

constexpr lantern_image kNoImage{0, 0, 0, nullptr};

char* copy_of(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::copy_n(text.c_str(), text.size() + 1, copy);
  return copy;
}

}  // namespace

}  // namespace lantern::api

using lantern::api::c_call;
using lantern::api::check_size;
using lantern::api::image_of;
using lantern::api::kNoImage;
using lantern::api::planes_of;

extern "C" {

lantern_image lantern_make_image(int w, int h, int c) {
  return c_call(kNoImage, [&] { return lantern::api::make(w, h, c); });
}

lantern_image lantern_load_image_color(const char* filename, int w, int h) {
  return c_call(kNoImage, [&] {
    lantern::api::require(filename, "filename");
    const lantern::data::Planes planes =
        lantern::data::to_planes(lantern::data::load_image(filename));
    if (w == 0 || h == 0) return image_of(planes);
    check_size(w, h);
    return image_of(lantern::data::resize(planes, w, h));
  });
}

void lantern_free_image(lantern_image image) { std::free(image.data); }

void lantern_copy_image_from_bytes(lantern_image image, const char* bytes) {
  c_call([&] {
    lantern::api::check(image);
    lantern::api::require(bytes, "bytes");
    const auto channels = static_cast<std::size_t>(image.c);
    const std::size_t plane = lantern::api::count_of(image) / channels;
    for (std::size_t i = 0; i < plane; ++i) {
      for (std::size_t c = 0; c < channels; ++c) {
        image.data[c * plane + i] =
            static_cast<float>(static_cast<unsigned char>(bytes[i * channels + c])) / 255.0F;
      }
    }
  });
}

lantern_image lantern_resize_image(lantern_image image, int w, int h) {
  return c_call(kNoImage, [&] {
    check_size(w, h);
    return image_of(lantern::data::resize(planes_of(image), w, h));
  });
}

lantern_image lantern_letterbox_image(lantern_image image, int w, int h) {
  return c_call(kNoImage, [&] {
    check_size(w, h);
    return image_of(lantern::data::letterbox(planes_of(image), w, h));
  });
}

lantern_image lantern_crop_image(lantern_image image, int dx, int dy, int w, int h) {
  return c_call(kNoImage, [&] {
    check_size(w, h);
    return image_of(lantern::data::crop(planes_of(image), dx, dy, w, h));
  });
}

lantern_image lantern_resize_min(lantern_image image, int min) {
  return c_call(kNoImage, [&] {
    check_size(min, min);
    const lantern::data::Planes planes = planes_of(image);
    const lantern::data::Extent to = lantern::data::shorter_side_to({planes.w, planes.h}, min);
    check_size(to.w, to.h);
    return image_of(lantern::data::resize(planes, to.w, to.h));
  });
}

void lantern_rgbgr_image(lantern_image image) {
  c_call([&] {
    lantern::api::check(image);
    if (image.c != 3) {
      throw lantern::Error(lantern::ErrorCode::kUsage, "image", "has {} channels, want 3", image.c);
    }
    const std::size_t plane = lantern::api::count_of(image) / 3;
    std::swap_ranges(image.data, image.data + plane, image.data + 2 * plane);
  });
}

lantern_metadata lantern_get_metadata(const char* datacfg) {
  return c_call(lantern_metadata{-1, nullptr}, [&] {
    lantern::api::require(datacfg, "datacfg");
    lantern::Diagnostics diagnostics;
    const lantern::data::DataFile file = lantern::data::read_data_file(datacfg, diagnostics);
    const std::vector<std::string> names =
        lantern::data::read_names(file.file("names", file.text("labels", "data/names.list")));
    lantern_metadata made{static_cast<int>(names.size()), nullptr};
    made.names = static_cast<char**>(std::calloc(names.size() + 1, sizeof(char*)));
    if (made.names == nullptr) throw std::bad_alloc();
    try {
      for (std::size_t i = 0; i < names.size(); ++i) {
        made.names[i] = lantern::api::copy_of(names[i]);
      }
    } catch (...) {
      lantern_free_metadata(made);
      throw;
    }
    return made;
  });
}

void lantern_free_metadata(lantern_metadata metadata) {
  if (metadata.names == nullptr) return;
  for (int i = 0; i < metadata.classes; ++i) std::free(metadata.names[i]);
  std::free(metadata.names);
}
}
