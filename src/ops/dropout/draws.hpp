#pragma once

#include <array>
#include <cstdint>

#include "core/rng.hpp"
#include "core/types.hpp"
#include "ops/kernel.hpp"

// The random numbers of dropout and DropBlock; not for other folders.
namespace lantern::ops {

inline constexpr int kDrawQuad = 4;  ///< channels that share one call of the generator

/// The draws of one image: 24-bit integers, a function of (seed, layer, iteration, image of the
/// iteration, position, channel) only.
class Draws {
 public:
  Draws(int layer, const RunContext& run, std::int64_t images, std::int64_t image,
        std::int64_t channels)
      : key_{static_cast<std::uint32_t>(run.seed),
             static_cast<std::uint32_t>(run.seed >> 32) ^ stream_id("dropout")},
        image_(static_cast<std::uint32_t>(run.subdivision * images + image)),
        iteration_(static_cast<std::uint32_t>(run.iteration)),
        layer_(static_cast<std::uint32_t>(layer)),
        quads_(ceil_div(channels, kDrawQuad)) {}

  /// Of channels 4 * quad .. 4 * quad + 3 at a position, each uniform in [0, 2^24).
  std::array<std::uint32_t, kDrawQuad> at(std::int64_t position, std::int64_t quad) const {
    const auto draw = static_cast<std::uint32_t>(position * quads_ + quad);
    auto bits = philox4x32({draw, image_, iteration_, layer_}, key_);
    for (std::uint32_t& b : bits) b >>= 8;
    return bits;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t image_, iteration_, layer_;
  std::int64_t quads_;
};

/// Draws below it come with the given probability.
inline std::uint32_t draw_limit(double probability) {
  return static_cast<std::uint32_t>(probability * 0x1p24);
}

}  // namespace lantern::ops
