#include "core/rng.hpp"

#include <cmath>
#include <numbers>

namespace lantern {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMul0 = 0xD2511F53;
  constexpr std::uint64_t kMul1 = 0xCD9E8D57;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMul0 * counter[0];
    const std::uint64_t product1 = kMul1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::uint32_t stream_id(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// The counter holds (block number, index, iteration); 2^32 iterations of a stream per index are out
// of reach, so the upper half of the iteration is folded into the stream's word of the key.
Rng::Rng(std::uint64_t seed, std::string_view name, std::uint64_t iteration, std::uint32_t index)
    : key_{static_cast<std::uint32_t>(seed),
           static_cast<std::uint32_t>(seed >> 32) ^ stream_id(name)},
      counter_{0, index, static_cast<std::uint32_t>(iteration),
               static_cast<std::uint32_t>(iteration >> 32)} {}

std::uint32_t Rng::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Rng::next_u64() {
  const std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

float Rng::uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24F; }

float Rng::uniform(float low, float high) {
  const float value = low + (high - low) * uniform();
  return value >= high && low < high ? std::nextafter(high, low)
                                     : value;  // rounding may reach the open end
}

std::int64_t Rng::uniform_int(std::int64_t low, std::int64_t high) {
  const std::uint64_t range =
      static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  if (range == 0) return static_cast<std::int64_t>(next_u64());
  // Multiply-shift on 64 random bits: the bias is below 2^-32 for every range that occurs here.
  const auto wide = static_cast<unsigned __int128>(next_u64()) * range;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                   static_cast<std::uint64_t>(wide >> 64));
}

float Rng::normal() {
  const float radius = std::sqrt(-2.0F * std::log(1.0F - uniform()));
  return radius * std::cos(2.0F * std::numbers::pi_v<float> * uniform());
}

}  // namespace lantern
