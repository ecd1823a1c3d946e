#include "api/picture.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lantern::api {

namespace {

void check(const ImageView& image) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kUsage, "image", "{}", what);
  };
  if (image.data == nullptr) refuse("data is null");
  if (image.width < 1 || image.height < 1) {
    refuse(fmt::format("size is {} x {}, want at least 1 x 1", image.width, image.height));
  }
  if (std::int64_t{image.width} * image.height > data::kMaxPixels) {
    refuse(
        fmt::format("{} x {} is more than {} pixels", image.width, image.height, data::kMaxPixels));
  }
  if (image.channels != 1 && image.channels != 3) {
    refuse(fmt::format("has {} channels, want 3 or 1 (leave alpha out)", image.channels));
  }
  const std::ptrdiff_t row = std::ptrdiff_t{image.width} * image.channels;
  if (image.format == ImageView::Format::kU8Hwc && image.row_bytes != 0 && image.row_bytes < row) {
    refuse(fmt::format("row_bytes is {}, a row has {}", image.row_bytes, row));
  }
  if (image.format == ImageView::Format::kF32Chw && image.row_bytes != 0) {
    refuse("row_bytes is for interleaved bytes; leave it 0 for planes of floats");
  }
}

void read_bytes(const ImageView& image, data::Planes& planes) {
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::ptrdiff_t step =
      image.row_bytes != 0 ? image.row_bytes : std::ptrdiff_t{image.width} * image.channels;
  for (std::size_t c = 0; c < channels; ++c) {
    float* to = planes.data.data() + c * planes.plane();
    for (int y = 0; y < image.height; ++y) {
      const std::uint8_t* from = static_cast<const std::uint8_t*>(image.data) + y * step + c;
      for (int x = 0; x < image.width; ++x, from += channels)
        *to++ = static_cast<float>(*from) / 255.0F;
    }
  }
}

// One plane from three, or three from one.
data::Planes with_channels(data::Planes planes, int channels) {
  if (planes.c == channels) return planes;
  const std::size_t plane = planes.plane();
  data::Planes out{.w = planes.w, .h = planes.h, .c = channels, .data = {}};
  if (planes.c == 1) {
    for (int c = 0; c < channels; ++c) {
      out.data.insert(out.data.end(), planes.data.begin(), planes.data.end());
    }
    return out;
  }
  out.data.resize(plane);
  for (std::size_t i = 0; i < plane; ++i) {
    out.data[i] = 0.299F * planes.data[i] + 0.587F * planes.data[plane + i] +
                  0.114F * planes.data[2 * plane + i];
  }
  return out;
}

void copy_out(const data::Planes& planes, std::span<float> out) {
  LANTERN_ASSERT(planes.data.size() == out.size(), "a picture of the network's size");
  std::ranges::copy(planes.data, out.begin());
}

}  // namespace

data::Planes planes_of(const ImageView& image, int channels) {
  check(image);
  if (channels != 1 && channels != 3) {
    throw Error(ErrorCode::kUsage, "image",
                "the network takes {} channels, which no picture has; use predict()", channels);
  }
  data::Planes planes{.w = image.width, .h = image.height, .c = image.channels, .data = {}};
  planes.data.resize(planes.plane() * static_cast<std::size_t>(image.channels));
  if (image.format == ImageView::Format::kU8Hwc) {
    read_bytes(image, planes);
  } else {
    std::copy_n(static_cast<const float*>(image.data), planes.data.size(), planes.data.begin());
  }
  if (image.order == ImageView::Order::kBgr && image.channels == 3) {
    const auto plane = static_cast<std::ptrdiff_t>(planes.plane());
    std::swap_ranges(planes.data.begin(), planes.data.begin() + plane,
                     planes.data.begin() + 2 * plane);
  }
  return with_channels(std::move(planes), channels);
}

void prepare_detector_input(const ImageView& image, const InputSpec& input, bool letterbox,
                            std::span<float> out) {
  const data::Planes planes = planes_of(image, input.channels);
  copy_out(letterbox ? data::letterbox(planes, input.width, input.height)
                     : data::resize(planes, input.width, input.height),
           out);
}

void prepare_classifier_input(const ImageView& image, const InputSpec& input,
                              std::span<float> out) {
  const data::Planes planes = planes_of(image, input.channels);
  copy_out(data::classifier_eval_crop(planes, input.width, input.height), out);
}

}  // namespace lantern::api
