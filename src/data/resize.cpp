#include "data/resize.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace lantern::data {

namespace {

/// One output coordinate: v = (1 - f) src[i] + f src[j].
struct Tap {
  int i = 0, j = 0;
  float f = 0;
};

std::vector<Tap> taps(int from, int to, ResizeMode mode) {
  std::vector<Tap> result(static_cast<std::size_t>(to));
  for (int k = 0; k < to; ++k) {
    double s = 0;
    if (from == to) {
      s = k;
    } else if (mode == ResizeMode::kHalfPixel) {
      s = std::clamp((k + 0.5) * from / to - 0.5, 0.0, from - 1.0);
    } else if (to == 1 || k == to - 1) {
      // Darknet: loses the second term of the last row for 5 % of all size pairs. Exact here.
      s = from - 1.0;
    } else {
      s = static_cast<double>(k) * (from - 1) / (to - 1);
    }
    Tap& tap = result[static_cast<std::size_t>(k)];
    tap.i = static_cast<int>(s);
    tap.j = std::min(tap.i + 1, from - 1);
    tap.f = static_cast<float>(s - tap.i);
  }
  return result;
}

/// A destination window in a larger plane.
struct Target {
  float* data;         ///< element (0, 0) of plane 0
  std::size_t stride;  ///< between rows
  std::size_t plane;   ///< between channels
};

/// Horizontally first, then vertically; `load_row(c, y, out)` gives one source row as floats.
template <typename LoadRow>
void resize_rows(int src_w, int src_h, int channels, int w, int h, ResizeMode mode,
                 const Target& target, LoadRow load_row) {
  const std::vector<Tap> across = taps(src_w, w, mode);
  const std::vector<Tap> down = taps(src_h, h, mode);
  std::vector<float> source(static_cast<std::size_t>(src_w));
  std::vector<float> rows[2] = {std::vector<float>(static_cast<std::size_t>(w)),
                                std::vector<float>(static_cast<std::size_t>(w))};
  for (int c = 0; c < channels; ++c) {
    int held[2] = {-1, -1};  // source row in each buffer
    const auto horizontal = [&](int y, int keep) -> int {
      for (int slot = 0; slot < 2; ++slot) {
        if (held[slot] == y) return slot;
      }
      const int slot = keep == 0 ? 1 : 0;
      load_row(c, y, source.data());
      float* out = rows[slot].data();
      for (std::size_t x = 0; x < across.size(); ++x) {
        const Tap& tap = across[x];
        out[x] = (1 - tap.f) * source[static_cast<std::size_t>(tap.i)] +
                 tap.f * source[static_cast<std::size_t>(tap.j)];
      }
      held[slot] = y;
      return slot;
    };
    for (int y = 0; y < h; ++y) {
      const Tap& tap = down[static_cast<std::size_t>(y)];
      // The upper row may already be held as the lower one of the row before.
      const int first = horizontal(tap.i, held[0] == tap.j ? 0 : (held[1] == tap.j ? 1 : -1));
      const int second = horizontal(tap.j, first);
      const float* a = rows[first].data();
      const float* b = rows[second].data();
      float* out = target.data + target.plane * static_cast<std::size_t>(c) +
                   target.stride * static_cast<std::size_t>(y);
      for (int x = 0; x < w; ++x) out[x] = (1 - tap.f) * a[x] + tap.f * b[x];
    }
  }
}

/// v / 255 as the division rounds it.
struct UnitTable {
  float value[256];
  UnitTable() {
    for (int i = 0; i < 256; ++i) value[i] = static_cast<float>(i) / 255.0F;
  }
};
const float* unit_table() {
  static const UnitTable table;
  return table.value;
}

void resize_image(const Image& src, int w, int h, ResizeMode mode, const Target& target) {
  const float* unit = unit_table();
  resize_rows(src.w, src.h, src.c, w, h, mode, target, [&](int c, int y, float* out) {
    const std::uint8_t* row = src.row(y) + c;
    for (int x = 0; x < src.w; ++x) out[x] = unit[row[x * src.c]];
  });
}

Planes make_planes(int w, int h, int c) {
  Planes planes{.w = w, .h = h, .c = c, .data = {}};
  planes.data.resize(planes.plane() * static_cast<std::size_t>(c));
  return planes;
}

}  // namespace

Planes to_planes(const Image& image) {
  Planes planes = make_planes(image.w, image.h, image.c);
  const float* unit = unit_table();
  const std::size_t plane = planes.plane();
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(image.c); ++c) {
      planes.data[c * plane + i] = unit[image.pixels[i * static_cast<std::size_t>(image.c) + c]];
    }
  }
  return planes;
}

Image to_image(const Planes& planes) {
  Image image{.w = planes.w, .h = planes.h, .c = planes.c, .pixels = {}};
  image.pixels.resize(planes.data.size());
  const std::size_t plane = planes.plane();
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(planes.c); ++c) {
      const float value = planes.data[c * plane + i] * 255.0F + 0.5F;
      image.pixels[i * static_cast<std::size_t>(planes.c) + c] =
          static_cast<std::uint8_t>(value > 0 ? std::min(value, 255.0F) : 0.0F);
    }
  }
  return image;
}

Planes resize(const Planes& src, int w, int h, ResizeMode mode) {
  Planes out = make_planes(w, h, src.c);
  resize_rows(src.w, src.h, src.c, w, h, mode,
              {out.data.data(), static_cast<std::size_t>(w), out.plane()},
              [&](int c, int y, float* row) {
                std::copy_n(src.data.data() + src.plane() * static_cast<std::size_t>(c) +
                                static_cast<std::size_t>(y) * static_cast<std::size_t>(src.w),
                            src.w, row);
              });
  return out;
}

Letterbox letterbox_geometry(int image_w, int image_h, int net_w, int net_h) {
  Letterbox box{.net_w = net_w, .net_h = net_h};
  const auto scaled = [](int side, int to, int from) {
    return std::max(1, static_cast<int>(static_cast<std::int64_t>(side) * to / from));
  };
  // net_w / W < net_h / H without division.
  if (static_cast<std::int64_t>(net_w) * image_h < static_cast<std::int64_t>(net_h) * image_w) {
    box.new_w = net_w;
    box.new_h = scaled(image_h, net_w, image_w);
  } else {
    box.new_h = net_h;
    box.new_w = scaled(image_w, net_h, image_h);
  }
  box.left = (net_w - box.new_w) / 2;
  box.top = (net_h - box.new_h) / 2;
  return box;
}

Planes letterbox(const Planes& src, int net_w, int net_h) {
  const Letterbox box = letterbox_geometry(src.w, src.h, net_w, net_h);
  const Planes scaled = resize(src, box.new_w, box.new_h);
  Planes out = make_planes(net_w, net_h, src.c);
  std::fill(out.data.begin(), out.data.end(), 0.5F);
  for (int c = 0; c < src.c; ++c) {
    for (int y = 0; y < box.new_h; ++y) {
      std::copy_n(scaled.data.data() + scaled.plane() * static_cast<std::size_t>(c) +
                      static_cast<std::size_t>(y) * static_cast<std::size_t>(box.new_w),
                  box.new_w,
                  out.data.data() + out.plane() * static_cast<std::size_t>(c) +
                      static_cast<std::size_t>(box.top + y) * static_cast<std::size_t>(net_w) +
                      box.left);
    }
  }
  return out;
}

Box undo_letterbox(const Box& box, const Letterbox& letterbox) {
  const auto net_w = static_cast<float>(letterbox.net_w);
  const auto net_h = static_cast<float>(letterbox.net_h);
  const auto new_w = static_cast<float>(letterbox.new_w);
  const auto new_h = static_cast<float>(letterbox.new_h);
  return {.x = (box.x - (net_w - new_w) / 2 / net_w) / (new_w / net_w),
          .y = (box.y - (net_h - new_h) / 2 / net_h) / (new_h / net_h),
          .w = box.w * net_w / new_w,
          .h = box.h * net_h / new_h};
}

void flip_horizontal(Planes& planes) {
  const auto w = static_cast<std::ptrdiff_t>(planes.w);
  for (auto row = planes.data.begin(); row != planes.data.end(); row += w)
    std::reverse(row, row + w);
}

void distort_hsv(Planes& planes, float hue, float saturation, float exposure) {
  const std::size_t plane = planes.plane();
  if (planes.c == 1) {
    for (float& value : planes.data) value = std::clamp(value * exposure, 0.0F, 1.0F);
    return;
  }
  float* red = planes.data.data();
  float* green = red + plane;
  float* blue = green + plane;
  for (std::size_t i = 0; i < plane; ++i) {
    const float r = red[i], g = green[i], b = blue[i];
    const float value = std::max({r, g, b});
    const float range = value - std::min({r, g, b});
    float h = 0;  // in sixths of the circle
    if (range > 0) {
      h = value == r ? (g - b) / range : (value == g ? 2 + (b - r) / range : 4 + (r - g) / range);
    }
    const float s = value > 0 ? range / value * saturation : 0;
    h = h / 6 + hue;
    h = (h - std::floor(h)) * 6;
    const float v = value * exposure;
    // Each channel is v - v s max(0, min(k, 4 - k, 1)) with k = (n + h) mod 6, n = 5, 3, 1: the
    // six-sector formula in one.
    const auto channel = [&](float n) {
      float k = n + h;
      if (k >= 6) k -= 6;
      return std::clamp(v - v * s * std::max(0.0F, std::min({k, 4 - k, 1.0F})), 0.0F, 1.0F);
    };
    red[i] = channel(5);
    green[i] = channel(3);
    blue[i] = channel(1);
  }
}

Planes crop(const Planes& src, int left, int top, int w, int h) {
  Planes out = make_planes(w, h, src.c);
  float* to = out.data.data();
  for (int c = 0; c < src.c; ++c) {
    for (int y = 0; y < h; ++y) {
      const float* row = src.data.data() + src.plane() * static_cast<std::size_t>(c) +
                         static_cast<std::size_t>(std::clamp(top + y, 0, src.h - 1)) *
                             static_cast<std::size_t>(src.w);
      for (int x = 0; x < w; ++x) *to++ = row[std::clamp(left + x, 0, src.w - 1)];
    }
  }
  return out;
}

Planes resize_shorter_side(const Planes& src, int size) {
  const auto longer = [&](int side, int by) {
    return std::max(1, static_cast<int>(static_cast<std::int64_t>(side) * size / by));
  };
  int w = size;
  int h = size;
  if (src.w < src.h) {
    h = longer(src.h, src.w);
  } else {
    w = longer(src.w, src.h);
  }
  return resize(src, w, h);
}

Planes classifier_eval_crop(const Planes& src, int net_w, int net_h) {
  const Planes scaled = resize_shorter_side(src, net_w);
  return crop(scaled, (scaled.w - net_w) / 2, (scaled.h - net_h) / 2, net_w, net_h);
}

void prepare_eval_image(const Image& image, const EvalSpec& spec, std::span<float> out) {
  LANTERN_ASSERT(image.c == spec.channels, "the picture has the channels of the network");
  const std::size_t plane =
      static_cast<std::size_t>(spec.net_w) * static_cast<std::size_t>(spec.net_h);
  LANTERN_ASSERT(out.size() == plane * static_cast<std::size_t>(spec.channels),
                 "out holds one picture");
  const auto stride = static_cast<std::size_t>(spec.net_w);
  if (!spec.letter_box) {
    resize_image(image, spec.net_w, spec.net_h, spec.mode, {out.data(), stride, plane});
    return;
  }
  const Letterbox box = letterbox_geometry(image.w, image.h, spec.net_w, spec.net_h);
  std::fill(out.begin(), out.end(), 0.5F);
  float* corner =
      out.data() + static_cast<std::size_t>(box.top) * stride + static_cast<std::size_t>(box.left);
  resize_image(image, box.new_w, box.new_h, spec.mode, {corner, stride, plane});
}

Planes prepare_eval_image(const Image& image, const EvalSpec& spec) {
  Planes planes = make_planes(spec.net_w, spec.net_h, spec.channels);
  prepare_eval_image(image, spec, planes.data);
  return planes;
}

}  // namespace lantern::data
