#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/rng.hpp"
#include "exec/model.hpp"

namespace lantern::test {

/// A small detector with residual blocks, a split, a pool and two heads, and data for one iteration
/// of it.
struct SmallNetwork {
  std::unique_ptr<exec::Model> model;
  std::vector<float> images;  ///< subdivisions x mini-batch
  std::vector<float> truth;

  static constexpr std::int64_t kMiniBatch = 2;
  static constexpr int kSubdivisions = 2;

  ops::RunContext context(std::int64_t iteration, int subdivision) const;
  /// Forward, loss, backward of all subdivisions, then the update.
  void iterate(std::int64_t iteration);
  /// All parameters, momentum and rolling statistics after another.
  std::vector<float> state() const;
};

/// Three boxes of two classes an image, in rows of six.
void random_truth(Rng& rng, std::span<float> truth, std::int64_t images);

SmallNetwork small_network(std::uint64_t seed, int threads, bool keep_everything = false);

}  // namespace lantern::test
