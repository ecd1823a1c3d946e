#include "device/measure.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "device/arena.hpp"

namespace lantern::device {

namespace {

// At a time: as many pieces as a file tier has under way.
constexpr Bytes kCopy = FileTier::kPiece * FileTier::kDepth;
constexpr Bytes kSmall = 4_KiB;

template <typename Copy>
double seconds_of(Copy copy) {
  const Clock::time_point start = Clock::now();
  copy();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename Copy>
double median_seconds(Copy copy) {
  std::array<double, 5> seconds;
  for (double& one : seconds) one = seconds_of(copy);
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

// Bytes per second of copies that take `seconds` in all, the latency of each left out.
double rate(Bytes bytes, double seconds, double latency) {
  const auto copies = static_cast<double>(ceil_div(bytes, kCopy));
  return static_cast<double>(bytes) / std::max(seconds - copies * latency, 0.1 * seconds);
}

LinkSpec measure(Tier& tier, Bytes bytes, FileTier* file) {
  LANTERN_ASSERT(bytes > 0 && bytes % kSmall == 0 && bytes <= tier.bytes(), "whole blocks");
  const Arena arena(std::min(bytes, kCopy));
  // No zeros: some drives keep none.
  for (Bytes i = 0; i < arena.bytes(); ++i)
    *arena.at(i) =
        static_cast<std::byte>((static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15) >> 56);
  const auto pass = [&](auto copy) {
    return seconds_of([&] {
      for (Bytes at = 0; at < bytes; at += kCopy)
        copy(at, std::span(arena.at(0), static_cast<std::size_t>(std::min(kCopy, bytes - at))));
    });
  };
  const std::span small(arena.at(0), static_cast<std::size_t>(kSmall));
  const bool cached = file != nullptr && !file->is_direct();
  LinkSpec link;
  const double out_latency = median_seconds([&] { tier.write(0, small); });
  // The first time, a file system looks for room.
  if (file != nullptr) pass([&](Bytes at, std::span<std::byte> part) { tier.write(at, part); });
  if (cached) file->sync();
  double out = pass([&](Bytes at, std::span<std::byte> part) { tier.write(at, part); });
  if (cached) out += seconds_of([&] { file->sync(); });
  const double in_latency = median_seconds([&] { tier.read(0, small); });
  if (cached) file->sync();
  const double in = pass([&](Bytes at, std::span<std::byte> part) { tier.read(at, part); });
  link.latency_seconds = std::max(out_latency, in_latency);
  link.out_bytes_per_second = rate(bytes, out, out_latency);
  link.in_bytes_per_second = rate(bytes, in, in_latency);
  return link;
}

}  // namespace

LinkSpec measure(Tier& tier, Bytes bytes) { return measure(tier, bytes, nullptr); }

LinkSpec measure_disk(FileTier& file) { return measure(file, file.bytes(), &file); }

}  // namespace lantern::device
