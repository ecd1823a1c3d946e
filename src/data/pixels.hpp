#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.hpp"
#include "data/augment.hpp"
#include "data/image.hpp"

// Internal to src/data: the 8-bit pixel steps of detector augmentation, in planes [c][h][w].
namespace lantern::data::pixels {

struct Rect {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< x1, y1 exclusive
  int w() const { return x1 - x0; }
  int h() const { return y1 - y0; }
};

/// Quadrant 0 top left, 1 top right, 2 bottom left, 3 bottom right of a picture x1 wide and y1
/// high whose quadrants meet at (x0, y0).
inline Rect quadrant_of(const Rect& cut, int number) {
  const bool is_left = number == 0 || number == 2, is_top = number < 2;
  return {.x0 = is_left ? 0 : cut.x0,
          .y0 = is_top ? 0 : cut.y0,
          .x1 = is_left ? cut.x0 : cut.x1,
          .y1 = is_top ? cut.y0 : cut.y1};
}

struct Colour {
  std::uint8_t value[3] = {0, 0, 0};
};

/// 8-bit net input of one source; only a window of it may be filled.
struct Canvas {
  int w = 0, h = 0, c = 3;
  std::vector<std::uint8_t> data;

  void reset(int width, int height, int channels) {
    w = width;
    h = height;
    c = channels;
    data.resize(plane() * static_cast<std::size_t>(c));
  }
  std::size_t plane() const { return static_cast<std::size_t>(w) * static_cast<std::size_t>(h); }
  std::uint8_t* row(int channel, int y) {
    return data.data() + plane() * static_cast<std::size_t>(channel) +
           static_cast<std::size_t>(y) * static_cast<std::size_t>(w);
  }
};

/// Each channel's mean, rounded.
Colour mean_colour(const Image& image, std::vector<std::uint32_t>& columns);

struct ResampleTables {
  std::vector<std::int16_t> blended;       ///< one row between two source rows, 128 steps a level
  std::vector<std::uint32_t> left, right;  ///< per column: offsets of both neighbours in `blended`
  std::vector<std::int16_t> fraction;      ///< per column: weight of the right one, 2^15 = 1
  std::vector<std::uint8_t> fill_row;
};

/// HSV jitter of one picture; nothing is done when all three are neutral.
struct ColourShift {
  float hue = 0, saturation = 1, exposure = 1;
};

/// Crop (outside: `fill`), half-pixel bilinear resize, mirror and colour jitter in one pass over
/// `window` of the canvas.
void crop_resize(const Image& src, const CropGeometry& crop, const Colour& fill, bool flip,
                 const ColourShift& shift, const Rect& window, ResampleTables& tables,
                 Canvas& canvas);

/// In place over `count` pixels; the 8-bit HSV of section 4.4, hue wraps.
void distort_hsv_8bit(std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue, std::size_t count,
                      const ColourShift& shift);
/// value * exposure, rounded and clamped.
void scale_8bit(std::uint8_t* values, std::size_t count, float exposure);

/// Weights of a Gaussian of odd size k: the fixed ones up to 7, else sigma = 0.3 ((k - 1)/2 - 1) +
/// 0.8.
std::vector<float> gaussian_kernel(int k);
struct BlurBuffers {
  std::vector<float> padded, rows;
  std::vector<std::uint8_t> sharp;
};
/// Whole canvas; the border is mirrored without repeating the edge pixel.
void gaussian_blur(Canvas& canvas, int k, BlurBuffers& buffers);

/// Rounded normal noise by table: `levels[u]` for a uniform 16-bit u.
class NoiseTable {
 public:
  /// Rebuilt only when the deviation changes.
  void prepare(float deviation);
  const std::vector<std::int16_t>& levels() const { return levels_; }

 private:
  float deviation_ = -1;
  std::vector<std::int16_t> levels_;
};
void add_noise(Canvas& canvas, const Rect& window, const NoiseTable& table, Rng& rng);

}  // namespace lantern::data::pixels
