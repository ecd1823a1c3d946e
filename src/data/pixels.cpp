#include "data/pixels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lantern::data::pixels {

Colour mean_colour(const Image& image, std::vector<std::uint32_t>& columns) {
  const std::size_t row = image.row_bytes();
  const auto c = static_cast<std::size_t>(image.c);
  std::uint64_t sums[3] = {0, 0, 0};
  // Column sums first: contiguous, so the loop over a row is one wide addition. 2^24 rows of 255
  // fit 32 bits.
  constexpr int kRows = 1 << 16;
  for (int first = 0; first < image.h; first += kRows) {
    columns.assign(row, 0);
    for (int y = first; y < std::min(image.h, first + kRows); ++y) {
      const std::uint8_t* src = image.row(y);
      std::uint32_t* sum = columns.data();
      for (std::size_t i = 0; i < row; ++i) sum[i] += src[i];
    }
    for (std::size_t i = 0; i < row; i += c) {
      for (std::size_t k = 0; k < c; ++k) sums[k] += columns[i + k];
    }
  }
  Colour mean;
  const std::uint64_t count =
      static_cast<std::uint64_t>(image.w) * static_cast<std::uint64_t>(image.h);
  for (std::size_t k = 0; k < c; ++k)
    mean.value[k] = static_cast<std::uint8_t>((sums[k] + count / 2) / count);
  return mean;
}

namespace {

constexpr int kOne = 1 << 15;

struct Sample {
  int i = 0;                ///< canvas position of the first neighbour; the second is i + 1
  std::int16_t weight = 0;  ///< of the second, 2^15 = 1
};

/// Half-pixel sampling of `from` canvas pixels into `to`, output position k.
Sample half_pixel(int k, int from, int to) {
  const double s = std::clamp((k + 0.5) * from / to - 0.5, 0.0, from - 1.0);
  Sample sample;
  sample.i = static_cast<int>(s);
  sample.weight =
      static_cast<std::int16_t>(std::min<long>(std::lround((s - sample.i) * kOne), kOne - 1));
  return sample;
}

/// a + (b - a) w / 2^15, rounded.
inline std::int16_t mix(std::int16_t a, std::int16_t b, std::int16_t w) {
  const auto difference = static_cast<std::int16_t>(b - a);
  return static_cast<std::int16_t>(a + ((difference * w + (kOne >> 1)) >> 15));
}

/// Levels times 128 (15 bits), so that two rounded blends stay within 1/100 of a level.
void blend_rows(const std::uint8_t* a, const std::uint8_t* b, std::int16_t weight,
                std::size_t count, std::int16_t* out) {
  if (a == b || weight == 0) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::int16_t>(a[i] << 7);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    out[i] =
        mix(static_cast<std::int16_t>(a[i] << 7), static_cast<std::int16_t>(b[i] << 7), weight);
  }
}

template <int kChannels>
void blend_columns(const ResampleTables& tables, int count, std::uint8_t* const (&out)[3]) {
  const std::int16_t* row = tables.blended.data();
  const std::uint32_t* left = tables.left.data();
  const std::uint32_t* right = tables.right.data();
  const std::int16_t* fraction = tables.fraction.data();
  for (int x = 0; x < count; ++x) {
    const std::int16_t* a = row + left[x];
    const std::int16_t* b = row + right[x];
    for (int k = 0; k < kChannels; ++k) {
      out[k][x] = static_cast<std::uint8_t>((mix(a[k], b[k], fraction[x]) + 64) >> 7);
    }
  }
}

}  // namespace

void crop_resize(const Image& src, const CropGeometry& crop, const Colour& fill, bool flip,
                 const ColourShift& shift, const Rect& window, ResampleTables& tables,
                 Canvas& canvas) {
  const auto c = static_cast<std::size_t>(src.c);
  const auto columns = static_cast<std::size_t>(window.w());

  // Columns of the source that are touched, then offsets into one blended row: [fill | touched
  // columns | fill].
  int first = src.w, last = -1;
  tables.left.resize(columns);
  tables.right.resize(columns);
  tables.fraction.resize(columns);
  const auto sample_at = [&](std::size_t x) {
    const int column = window.x0 + static_cast<int>(x);
    return half_pixel(flip ? canvas.w - 1 - column : column, crop.w, canvas.w);
  };
  for (std::size_t x = 0; x < columns; ++x) {
    const Sample sample = sample_at(x);
    for (const int i : {sample.i, std::min(sample.i + 1, crop.w - 1)}) {
      const int column = crop.left + i;
      if (column < 0 || column >= src.w) continue;
      first = std::min(first, column);
      last = std::max(last, column);
    }
  }
  const std::size_t touched = last >= first ? static_cast<std::size_t>(last - first + 1) : 0;
  const auto offset = [&](int i) -> std::uint32_t {
    const int column = crop.left + std::min(i, crop.w - 1);
    if (column < 0) return 0;
    if (column >= src.w) return static_cast<std::uint32_t>((touched + 1) * c);
    return static_cast<std::uint32_t>(static_cast<std::size_t>(column - first + 1) * c);
  };
  for (std::size_t x = 0; x < columns; ++x) {
    const Sample sample = sample_at(x);
    tables.left[x] = offset(sample.i);
    tables.right[x] = offset(sample.i + 1);
    tables.fraction[x] = sample.weight;
  }
  tables.blended.resize((touched + 2) * c);
  tables.fill_row.resize(touched * c);
  for (std::size_t i = 0; i < tables.fill_row.size(); ++i) tables.fill_row[i] = fill.value[i % c];
  for (std::size_t k = 0; k < c; ++k) {
    const auto value = static_cast<std::int16_t>(fill.value[k] << 7);
    tables.blended[k] = value;
    tables.blended[(touched + 1) * c + k] = value;
  }

  const bool is_neutral = shift.hue == 0 && shift.saturation == 1 && shift.exposure == 1;
  const auto source_row = [&](int i) -> const std::uint8_t* {
    const int y = crop.top + std::min(i, crop.h - 1);
    if (y < 0 || y >= src.h || touched == 0) return tables.fill_row.data();
    return src.row(y) + static_cast<std::size_t>(first) * c;
  };
  for (int y = window.y0; y < window.y1; ++y) {
    const Sample sample = half_pixel(y, crop.h, canvas.h);
    blend_rows(source_row(sample.i), source_row(sample.i + 1), sample.weight, touched * c,
               tables.blended.data() + c);
    std::uint8_t* out[3] = {};
    for (int k = 0; k < src.c; ++k) out[k] = canvas.row(k, y) + window.x0;
    if (src.c == 3) {
      blend_columns<3>(tables, window.w(), out);
      if (!is_neutral) distort_hsv_8bit(out[0], out[1], out[2], columns, shift);
    } else {
      blend_columns<1>(tables, window.w(), out);
      if (shift.exposure != 1) scale_8bit(out[0], columns, shift.exposure);
    }
  }
}

void distort_hsv_8bit(std::uint8_t* __restrict red, std::uint8_t* __restrict green,
                      std::uint8_t* __restrict blue, std::size_t count, const ColourShift& shift) {
  // H in steps of 2 degrees (0 ... 179), S and V in 0 ... 255, each rounded as an 8-bit HSV picture
  // would be.
  const float turn = std::round(179.0F * shift.hue);
  const float saturation = shift.saturation;
  const float exposure = shift.exposure;
  const auto rounded = [](float v) {
    return static_cast<float>(static_cast<int>(v + 0.5F));
  };  // v >= 0
  for (std::size_t i = 0; i < count; ++i) {
    const float r = red[i], g = green[i], b = blue[i];
    const float high = std::max(std::max(r, g), b);
    const float range = high - std::min(std::min(r, g), b);
    const float per_range = 30.0F / std::max(range, 1.0F);
    const float from_red = (g - b) * per_range;
    const float from_green = 60.0F + (b - r) * per_range;
    const float from_blue = 120.0F + (r - g) * per_range;
    float h = high == r ? from_red : (high == g ? from_green : from_blue);
    h = h < 0 ? h + 180.0F : h;
    h = rounded(h);
    h = h >= 180.0F ? h - 180.0F : h;
    float s = rounded(255.0F * range / std::max(high, 1.0F));
    s = std::min(rounded(s * saturation), 255.0F);
    const float v = std::min(rounded(high * exposure), 255.0F);
    // Darknet: the hue saturates at 0. It wraps here.
    h += turn;
    h = h < 0 ? h + 180.0F : h;
    h = h >= 180.0F ? h - 180.0F : h;
    // v - v s max(0, min(k, 4 - k, 1)), k = (n + h) mod 6 with n = 5, 3, 1: the six sectors without
    // branches.
    const float sixth = h * (1.0F / 30.0F);
    const float chroma = v * s * (1.0F / 255.0F);
    const auto channel = [&](float n) {
      float k = sixth + n;
      k = k >= 6.0F ? k - 6.0F : k;
      const float weight = std::max(0.0F, std::min(std::min(k, 4.0F - k), 1.0F));
      return static_cast<std::uint8_t>(static_cast<int>(v - chroma * weight + 0.5F));
    };
    red[i] = channel(5.0F);
    green[i] = channel(3.0F);
    blue[i] = channel(1.0F);
  }
}

void scale_8bit(std::uint8_t* values, std::size_t count, float exposure) {
  for (std::size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<std::uint8_t>(static_cast<int>(std::min(values[i] * exposure + 0.5F, 255.0F)));
  }
}

std::vector<float> gaussian_kernel(int k) {
  switch (k) {
    case 1:
      return {1};
    case 3:
      return {0.25F, 0.5F, 0.25F};
    case 5:
      return {0.0625F, 0.25F, 0.375F, 0.25F, 0.0625F};
    case 7:
      return {0.03125F, 0.109375F, 0.21875F, 0.28125F, 0.21875F, 0.109375F, 0.03125F};
    default:
      break;
  }
  const double sigma = 0.3 * ((k - 1) * 0.5 - 1) + 0.8;
  std::vector<double> weights;
  double sum = 0;
  for (int i = 0; i < k; ++i) {
    const double distance = i - (k - 1) / 2;
    weights.push_back(std::exp(-distance * distance / (2 * sigma * sigma)));
    sum += weights.back();
  }
  std::vector<float> kernel;
  for (const double weight : weights) kernel.push_back(static_cast<float>(weight / sum));
  return kernel;
}

namespace {
/// ... 2 1 | 0 1 2 ... n-1 | n-2 ...
int mirrored(int i, int n) {
  if (n == 1) return 0;
  const int period = 2 * (n - 1);
  i = ((i % period) + period) % period;
  return i < n ? i : period - i;
}
}  // namespace

void gaussian_blur(Canvas& canvas, int k, BlurBuffers& buffers) {
  if (k <= 1) return;
  const std::vector<float> kernel = gaussian_kernel(k);
  const int half = k / 2;
  const auto w = static_cast<std::size_t>(canvas.w);
  buffers.padded.resize(w + 2 * static_cast<std::size_t>(half));
  buffers.rows.resize(canvas.plane() + w);
  float* sum = buffers.rows.data() + canvas.plane();
  for (int channel = 0; channel < canvas.c; ++channel) {
    for (int y = 0; y < canvas.h; ++y) {
      const std::uint8_t* src = canvas.row(channel, y);
      for (int x = -half; x < canvas.w + half; ++x) {
        buffers.padded[static_cast<std::size_t>(x + half)] = src[mirrored(x, canvas.w)];
      }
      float* out = buffers.rows.data() + w * static_cast<std::size_t>(y);
      std::fill_n(out, w, 0.0F);
      for (std::size_t tap = 0; tap < kernel.size(); ++tap) {
        const float weight = kernel[tap];
        const float* from = buffers.padded.data() + tap;
        for (std::size_t x = 0; x < w; ++x) out[x] += weight * from[x];
      }
    }
    for (int y = 0; y < canvas.h; ++y) {
      std::fill_n(sum, w, 0.5F);
      for (int tap = 0; tap < k; ++tap) {
        const float weight = kernel[static_cast<std::size_t>(tap)];
        const float* from =
            buffers.rows.data() + w * static_cast<std::size_t>(mirrored(y + tap - half, canvas.h));
        for (std::size_t x = 0; x < w; ++x) sum[x] += weight * from[x];
      }
      std::uint8_t* out = canvas.row(channel, y);
      for (std::size_t x = 0; x < w; ++x) {
        out[x] = static_cast<std::uint8_t>(static_cast<int>(std::min(sum[x], 255.0F)));
      }
    }
  }
}

void NoiseTable::prepare(float deviation) {
  if (deviation == deviation_) return;
  deviation_ = deviation;
  constexpr std::size_t kSize = 1 << 16;
  levels_.assign(kSize, 0);
  if (deviation <= 0) return;
  // The level v stands for every u whose quantile lies below that of v + 1/2.
  int v = -255;
  for (std::size_t u = 0; u < kSize; ++u) {
    const double quantile = (static_cast<double>(u) + 0.5) / kSize;
    const auto below = [&](int level) {
      return 0.5 * std::erfc(-(level + 0.5) / (static_cast<double>(deviation) * std::sqrt(2.0)));
    };
    while (v < 255 && below(v) < quantile) ++v;
    levels_[u] = static_cast<std::int16_t>(v);
  }
}

void add_noise(Canvas& canvas, const Rect& window, const NoiseTable& table, Rng& rng) {
  const std::int16_t* levels = table.levels().data();
  for (int channel = 0; channel < canvas.c; ++channel) {
    for (int y = window.y0; y < window.y1; ++y) {
      std::uint8_t* row = canvas.row(channel, y);
      std::uint32_t bits = 0;
      for (int x = window.x0; x < window.x1; ++x) {
        const bool is_second = ((x - window.x0) & 1) != 0;
        bits = is_second ? bits >> 16 : rng.next_u32();
        row[x] = static_cast<std::uint8_t>(std::clamp(row[x] + levels[bits & 0xFFFF], 0, 255));
      }
    }
  }
}

}  // namespace lantern::data::pixels
