#include "exec/measure_machine.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "device/arena.hpp"
#include "device/file_tier.hpp"
#include "device/machine.hpp"
#include "device/measure.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lantern::exec {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr int kChains = 12;  // independent sums: more than latency x units of any core
constexpr std::int64_t kSteps = 400'000;

// Each returns what it computed, so that nothing is left out, and tells the width of its vectors.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) float multiply_add_512() {
  __m512 sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = _mm512_set1_ps(static_cast<float>(c));
  const __m512 factor = _mm512_set1_ps(0.9999F);
  for (std::int64_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
  float total = 0;
  for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}
__attribute__((target("avx2,fma"))) float multiply_add_256() {
  __m256 sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = _mm256_set1_ps(static_cast<float>(c));
  const __m256 factor = _mm256_set1_ps(0.9999F);
  for (std::int64_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  float total = 0;
  for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}
#endif

typedef float Vector __attribute__((vector_size(16)));
float multiply_add_128() {
  Vector sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = Vector{} + static_cast<float>(c);
  const Vector factor = Vector{} + 0.9999F;
  for (std::int64_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (Vector& sum : sums) sum = sum * factor + factor;
  float total = 0;
  for (const Vector& sum : sums) total += sum[0];
  return total;
}

struct Arithmetic {
  float (*run)();
  int width;
};
Arithmetic widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {multiply_add_256, 8};
#endif
  return {multiply_add_128, 4};
}

// Best of three: other work on the machine only ever makes it slower.
template <typename Work>
double best_seconds(const Work& work) {
  work();
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Clock::time_point start = Clock::now();
    work();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

template <typename Work>
double median_seconds(const Work& work) {
  work();
  std::array<double, 9> times{};
  for (double& time : times) {
    const Clock::time_point start = Clock::now();
    work();
    time = seconds_since(start);
  }
  std::ranges::nth_element(times, times.begin() + times.size() / 2);
  return times[times.size() / 2];
}

// A value that is looked at, so that the compiler keeps what makes it.
void keep(float value) {
  volatile float kept = value;
  static_cast<void>(kept);
}

double flops_per_second(int threads) {
  const Arithmetic arithmetic = widest();
  const double seconds = best_seconds([&] {
#pragma omp parallel num_threads(threads)
    keep(arithmetic.run());
  });
  return 2.0 * arithmetic.width * kChains * static_cast<double>(kSteps) * threads / seconds;
}

// Bytes read and written together.
double copy_bytes_per_second(int threads, Bytes most_memory) {
  // A thread's; beyond its share of caches where there is room for that.
  const Bytes block = std::clamp(most_memory / (2 * threads), 1_MiB, 32_MiB);
  device::Arena memory(2 * block * threads);
  const double seconds = best_seconds([&] {
#pragma omp parallel num_threads(threads)
    {
      const Bytes mine = 2 * block * omp_get_thread_num();
      std::memcpy(memory.at(mine + block), memory.at(mine), static_cast<std::size_t>(block));
    }
  });
  return 2.0 * static_cast<double>(block) * threads / seconds;
}

double start_seconds(int threads) {
  constexpr int kStarts = 200;
  return best_seconds([&] {
           for (int i = 0; i < kStarts; ++i) {
#pragma omp parallel num_threads(threads)
             keep(1);
           }
         }) /
         kStarts;
}

constexpr Bytes kPiece = device::FileTier::kPiece;

}  // namespace

DeviceSpec measure_cpu(int threads, Bytes most_memory) {
  return {.name = "cpu",
          .memory = device::usable_memory(),
          .flops_per_second = flops_per_second(threads),
          .memory_bytes_per_second = copy_bytes_per_second(threads, most_memory),
          .op_seconds = start_seconds(threads)};
}

void measure_disk(DeviceSpec& device, const std::filesystem::path& folder, Bytes most_bytes,
                  int threads) {
  const std::int64_t pieces = std::clamp<std::int64_t>(most_bytes / kPiece, 1, 32);
  device::FileTier file({.folder = folder, .bytes = pieces * kPiece});
  device.disk = device::measure_disk(file);

  // Arithmetic alone and beside a thread that writes.
  const Arithmetic arithmetic = widest();
  const auto compute = [&] {
#pragma omp parallel num_threads(threads)
    keep(arithmetic.run());
  };
  const double alone = median_seconds(compute);
  std::atomic<bool> stop = false;
  const device::Arena memory(kPiece);
  std::thread writer([&] {
    try {
      for (std::int64_t i = 0; !stop; i = (i + 1) % pieces)
        file.write(i * kPiece, std::span(memory.at(0), static_cast<std::size_t>(kPiece)));
    } catch (const Error&) {
      stop = true;  // the disk is full now; the factor is that of an idle disk
    }
  });
  const double beside = median_seconds(compute);
  stop = true;
  writer.join();
  device.contention = std::clamp(beside / alone, 1.0, 2.0);
}

}  // namespace lantern::exec
