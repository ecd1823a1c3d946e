#pragma once

#include <cstdint>
#include <optional>

#include "ops/conv/conv.hpp"
#include "ops/kernel.hpp"
#include "ops/layout.hpp"

// Convolutions 3x3 of stride 1 in the transformed domain, for inference with AVX-512: a quarter of
// the products of the direct sum (4 x 4 tiles), or four ninths (2 x 2), and rounding of its own
// (about 1e-6 of the rms of the result). Maps lie in channel blocks of 16.
namespace lantern::ops::winograd {

/// How one convolution runs. Floats are counted, not bytes.
struct Schedule {
  int results = 4;              ///< side of a tile of results: 2 or 4
  std::int64_t rows = 0;        ///< of tiles
  std::int64_t columns = 0;     ///< of tiles
  std::int64_t chunks = 0;      ///< runs of tiles that a thread takes through all stages; 0: all
                                ///< threads transform the sources, then each takes filters
  std::int64_t chunk = 0;       ///< most tiles of a chunk
  std::int64_t piece = 0;       ///< channels whose weights are transformed at once
  std::int64_t weights = 0;     ///< of transformed weights, of all filters or of a piece a thread
  std::int64_t sources = 0;     ///< of transformed sources, of all tiles or of a chunk a thread
  std::int64_t sums = 0;        ///< of 32 filters and a chunk of tiles, a thread
  std::int64_t scratch(int threads) const {
    return chunks == 0 ? sources + threads * (weights + sums)
                       : weights + threads * (sources + sums);
  }
};

/// Nothing where the direct convolution does less work, or this program or CPU cannot.
std::optional<Schedule> schedule(const ConvGeometry& geometry, int block, int threads);

/// Weights [OC, IC, 3, 3] as [OC/32][IC to 16][9][32 or, at the end, 16], zero where there are none.
class WeightsLayout final : public OpaqueLayout {
 public:
  WeightsLayout(std::int64_t filters, std::int64_t channels)
      : filters_(filters), channels_(channels) {}
  Bytes bytes() const override;
  std::string describe() const override;
  bool equals(const OpaqueLayout& other) const override;
  void to_plain(const void* physical, float* plain) const override;
  void from_plain(const float* plain, void* physical) const override;

 private:
  std::int64_t filters_, channels_;
};

/// Addresses of one image.
struct Image {
  const float* src;
  const float* weights;
  const float* bias;      ///< or null
  const float* residual;  ///< or null
  float* dst;
  float* scratch;
};

/// Nothing for an op that had better, or must, run otherwise.
std::optional<KernelChoice> choose(const graph::Op& op, const SelectContext& context);

/// Runs one image; same bits whatever the threads.
void run(const ConvGeometry& geometry, const Schedule& schedule, const Epilogue& epilogue,
         const Image& image, int threads);

}  // namespace lantern::ops::winograd
