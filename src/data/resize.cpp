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

Tap tap_at(int k, int from, int to, ResizeMode mode) {
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
  Tap tap;
  tap.i = static_cast<int>(s);
  tap.j = std::min(tap.i + 1, from - 1);
  tap.f = static_cast<float>(s - tap.i);
  return tap;
}

std::vector<Tap> taps(int from, int to, ResizeMode mode) {
  std::vector<Tap> result(static_cast<std::size_t>(to));
  for (int k = 0; k < to; ++k) result[static_cast<std::size_t>(k)] = tap_at(k, from, to, mode);
  return result;
}

/// `count` coordinates from `first` on of a side that is resized to `to`, mirrored if asked;
/// outside of it the edge is repeated.
std::vector<Tap> window_taps(int from, int to, int first, int count, bool mirrored) {
  std::vector<Tap> result(static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k) {
    const int inside = std::clamp(first + k, 0, to - 1);
    result[static_cast<std::size_t>(k)] =
        tap_at(mirrored ? to - 1 - inside : inside, from, to, ResizeMode::kCornerAligned);
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
void resample(int src_w, int channels, std::span<const Tap> across, std::span<const Tap> down,
              const Target& target, LoadRow load_row) {
  const std::size_t w = across.size();
  std::vector<float> source(static_cast<std::size_t>(src_w));
  std::vector<float> rows[2] = {std::vector<float>(w), std::vector<float>(w)};
  for (int c = 0; c < channels; ++c) {
    int held[2] = {-1, -1};  // source row in each buffer
    const auto horizontal = [&](int y, int keep) -> int {
      for (int slot = 0; slot < 2; ++slot) {
        if (held[slot] == y) return slot;
      }
      const int slot = keep == 0 ? 1 : 0;
      load_row(c, y, source.data());
      float* out = rows[slot].data();
      for (std::size_t x = 0; x < w; ++x) {
        const Tap& tap = across[x];
        out[x] = (1 - tap.f) * source[static_cast<std::size_t>(tap.i)] +
                 tap.f * source[static_cast<std::size_t>(tap.j)];
      }
      held[slot] = y;
      return slot;
    };
    for (std::size_t y = 0; y < down.size(); ++y) {
      const Tap& tap = down[y];
      // The upper row may already be held as the lower one of the row before.
      const int first = horizontal(tap.i, held[0] == tap.j ? 0 : (held[1] == tap.j ? 1 : -1));
      const int second = horizontal(tap.j, first);
      const float* a = rows[first].data();
      const float* b = rows[second].data();
      float* out = target.data + target.plane * static_cast<std::size_t>(c) + target.stride * y;
      for (std::size_t x = 0; x < w; ++x) out[x] = (1 - tap.f) * a[x] + tap.f * b[x];
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

void resample_image(const Image& src, std::span<const Tap> across, std::span<const Tap> down,
                    const Target& target) {
  const float* unit = unit_table();
  resample(src.w, src.c, across, down, target, [&](int c, int y, float* out) {
    const std::uint8_t* row = src.row(y) + c;
    for (int x = 0; x < src.w; ++x) out[x] = unit[row[x * src.c]];
  });
}

void resize_image(const Image& src, int w, int h, ResizeMode mode, const Target& target) {
  resample_image(src, taps(src.w, w, mode), taps(src.h, h, mode), target);
}

void resample_planes(const Planes& src, std::span<const Tap> across, std::span<const Tap> down,
                     Planes& out) {
  const Target target{out.data.data(), static_cast<std::size_t>(out.w), out.plane()};
  resample(src.w, src.c, across, down, target, [&](int c, int y, float* row) {
    std::copy_n(src.data.data() + src.plane() * static_cast<std::size_t>(c) +
                    static_cast<std::size_t>(y) * static_cast<std::size_t>(src.w),
                src.w, row);
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
  resample_planes(src, taps(src.w, w, mode), taps(src.h, h, mode), out);
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
  const auto inside = [](int first, int i, int side) {
    return std::clamp<std::int64_t>(std::int64_t{first} + i, 0, side - 1);
  };
  Planes out = make_planes(w, h, src.c);
  float* to = out.data.data();
  for (int c = 0; c < src.c; ++c) {
    for (int y = 0; y < h; ++y) {
      const float* row =
          src.data.data() + src.plane() * static_cast<std::size_t>(c) +
          static_cast<std::size_t>(inside(top, y, src.h)) * static_cast<std::size_t>(src.w);
      for (int x = 0; x < w; ++x) *to++ = row[inside(left, x, src.w)];
    }
  }
  return out;
}

Extent shorter_side_to(Extent image, int size) {
  // Sides beyond this are never touched: a view looks at its window only.
  constexpr std::int64_t kMost = 1 << 30;
  const auto longer = [&](int side, int by) {
    return static_cast<int>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(side) * size / by, 1, kMost));
  };
  return image.w < image.h ? Extent{size, longer(image.h, image.w)}
                           : Extent{longer(image.w, image.h), size};
}

namespace {

/// Resize to w x h, then the window of the net's size with its corner at (left, top).
struct View {
  int w = 0, h = 0;
  int left = 0, top = 0;
  bool mirrored = false;
};

View centre_crop(int image_w, int image_h, int net_w, int net_h) {
  const Extent scaled = shorter_side_to({image_w, image_h}, net_w);
  return {
      .w = scaled.w, .h = scaled.h, .left = (scaled.w - net_w) / 2, .top = (scaled.h - net_h) / 2};
}

// Darknet's valid10: five windows of a picture a little larger than the net, plain and mirrored.
View tenth_view(int number, int net_w, int net_h) {
  constexpr int kShift = 32;
  constexpr int kOffsets[5][2] = {{-1, -1}, {1, -1}, {0, 0}, {-1, 1}, {1, 1}};
  const auto& offset = kOffsets[number % 5];
  return {.w = net_w + kShift,
          .h = net_h + kShift,
          .left = offset[0] * kShift,
          .top = offset[1] * kShift,
          .mirrored = number >= 5};
}

}  // namespace

Planes classifier_eval_crop(const Planes& src, int net_w, int net_h) {
  const View view = centre_crop(src.w, src.h, net_w, net_h);
  Planes out = make_planes(net_w, net_h, src.c);
  resample_planes(src, window_taps(src.w, view.w, view.left, net_w, false),
                  window_taps(src.h, view.h, view.top, net_h, false), out);
  return out;
}

void prepare_eval_image(const Image& image, const EvalSpec& spec, std::span<float> out) {
  LANTERN_ASSERT(image.c == spec.channels, "the picture has the channels of the network");
  const std::size_t plane =
      static_cast<std::size_t>(spec.net_w) * static_cast<std::size_t>(spec.net_h);
  LANTERN_ASSERT(out.size() == spec.floats(), "out holds the views of one picture");
  const auto stride = static_cast<std::size_t>(spec.net_w);
  if (spec.view != EvalView::kWhole) {
    const std::size_t one = plane * static_cast<std::size_t>(spec.channels);
    for (int number = 0; number < spec.views(); ++number) {
      View view = spec.view == EvalView::kTenCrops
                      ? tenth_view(number, spec.net_w, spec.net_h)
                      : centre_crop(image.w, image.h, spec.net_w, spec.net_h);
      if (spec.view == EvalView::kCentreCropAndMirrored) view.mirrored = number == 1;
      resample_image(image, window_taps(image.w, view.w, view.left, spec.net_w, view.mirrored),
                     window_taps(image.h, view.h, view.top, spec.net_h, false),
                     {out.data() + static_cast<std::size_t>(number) * one, stride, plane});
    }
    return;
  }
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
  LANTERN_ASSERT(spec.views() == 1, "one view");
  Planes planes = make_planes(spec.net_w, spec.net_h, spec.channels);
  prepare_eval_image(image, spec, planes.data);
  return planes;
}

}  // namespace lantern::data
