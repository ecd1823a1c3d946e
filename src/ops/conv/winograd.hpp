#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ops/conv/own_conv.hpp"

// Convolutions 3x3 of stride 1 in the transformed domain, for inference with AVX-512: a quarter of
// the products of the direct sum (4 x 4 tiles), or four ninths (2 x 2), and rounding of its own
// (up to some 1e-5 of the rms of the result). Maps lie in channel blocks of 16.
namespace lantern::ops::winograd {

/// How one convolution runs. Floats are counted, not bytes.
struct Schedule {
  int results = 4;           ///< side of a tile of results: 2 or 4
  std::int64_t rows = 0;     ///< of tiles
  std::int64_t columns = 0;  ///< of tiles
  std::int64_t chunks = 0;   ///< runs of tiles that a thread takes through all stages; 0: all
                             ///< threads transform the sources, then each takes filters
  std::int64_t chunk = 0;    ///< most tiles of a chunk
  std::int64_t piece = 0;    ///< channels whose weights are transformed at once
  std::int64_t weights = 0;  ///< of transformed weights, of all filters or of a piece a thread
  std::int64_t sources = 0;  ///< of transformed sources, of all tiles or of a chunk a thread
  std::int64_t sums = 0;     ///< of 32 filters and a chunk of tiles, a thread
  std::int64_t scratch(int threads) const {
    return chunks == 0 ? sources + threads * (weights + sums)
                       : weights + threads * (sources + sums);
  }
};

/// Nothing where the direct convolution does less work, or this program or CPU cannot.
std::optional<Schedule> schedule(const ConvGeometry& geometry, int block, int threads);

inline constexpr std::int64_t kLanes = 16;
inline constexpr std::int64_t kPanel = 32;  ///< filters whose sums stand in registers together
inline constexpr std::int64_t kTaps = 9;

inline std::int64_t padded_to_block(std::int64_t channels) { return round_up(channels, kLanes); }
/// Channel blocks of a panel: two, or one at the end.
inline int blocks_of_panel(std::int64_t panel, std::int64_t filters) {
  return (panel + 1) * kPanel > padded_to_block(filters) ? 1 : 2;
}

/// Weights [OC, IC, 3, 3] as [OC/32][IC to 16][9][32 or, at the end, 16], zero where there are
/// none.
struct PanelPlaces {
  std::int64_t filters = 0, channels = 0;

  static constexpr std::string_view kName = "w:panels";
  bool operator==(const PanelPlaces&) const = default;
  std::int64_t plain_floats() const { return filters * channels * kTaps; }
  std::int64_t floats() const {
    return padded_to_block(filters) * padded_to_block(channels) * kTaps;
  }
  std::int64_t operator()(std::int64_t plain) const {
    const std::int64_t tap = plain % kTaps, c = plain / kTaps % channels;
    const std::int64_t f = plain / kTaps / channels;
    const std::int64_t panel = f / kPanel;
    return panel * kPanel * padded_to_block(channels) * kTaps +
           (c * kTaps + tap) * blocks_of_panel(panel, filters) * kLanes + f % kPanel;
  }
};

/// Nothing for an op that had better, or must, run otherwise.
std::optional<KernelChoice> choose(const graph::Op& op, const SelectContext& context);

/// Runs one image; same bits whatever the threads.
void run(const ConvGeometry& geometry, const Schedule& schedule, const Epilogue& epilogue,
         const ConvImage& image, int threads);

}  // namespace lantern::ops::winograd
