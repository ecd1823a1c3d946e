#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lantern {

/// Philox4x32-10, the counter-based generator of Salmon et al. 2011 ("Parallel random numbers: as
/// easy as 1, 2, 3"). Pure: four 32-bit words for a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// Stable 32-bit hash of a stream name (FNV-1a), so that draws are addressed by name.
std::uint32_t stream_id(std::string_view name);

/// Addressed random draws: a stream is a pure function of (seed, name, iteration, index), never of
/// what was drawn elsewhere, so any thread count and any recomputation sees the same numbers.
class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view name, std::uint64_t iteration = 0,
      std::uint32_t index = 0);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  /// Uniform in [0, 1), 24 bits.
  float uniform();
  /// Uniform in [low, high).
  float uniform(float low, float high);
  /// Uniform integer, both ends included.
  std::int64_t uniform_int(std::int64_t low, std::int64_t high);
  bool coin() { return (next_u32() & 1U) != 0; }
  /// Normal distribution, mean 0, deviation 1 (Box-Muller).
  float normal();

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace lantern
