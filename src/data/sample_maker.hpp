#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "data/image.hpp"

namespace lantern::data {

/// Address of a training picture; every draw is a function of it, of the source's number and of the
/// draw's name.
struct SampleKey {
  std::uint64_t seed = 0;
  std::int64_t iteration = 0;
  std::uint32_t slot = 0;
};

/// What one training sample is to the network. The size of one iteration may differ (multi-scale).
struct SampleShape {
  int net_w = 0, net_h = 0, channels = 3;
  std::size_t truth_floats = 0;  ///< of one sample, at every size

  std::size_t picture_floats() const {
    return static_cast<std::size_t>(net_w) * static_cast<std::size_t>(net_h) *
           static_cast<std::size_t>(channels);
  }
  SampleShape at(int width, int height) const { return {width, height, channels, truth_floats}; }
};

/// A decoded picture and its place in SampleMaker::images().
struct SourceImage {
  const Image* image = nullptr;
  std::int64_t index = 0;
};

/// Buffers that are reused from sample to sample; one per thread.
class SampleScratch {
 public:
  virtual ~SampleScratch() = default;
};

/// The law by which decoded pictures become input and truth of a training: of a detector
/// (detector_samples.hpp) or of a classifier (class_samples.hpp). Every function is pure and may be
/// called from any thread.
class SampleMaker {
 public:
  /// Pictures that one sample can be mixed from.
  static constexpr int kMaxSources = 4;

  virtual ~SampleMaker() = default;
  /// The training list.
  virtual const std::vector<std::string>& images() const = 0;
  virtual SampleShape shape() const = 0;
  /// How many pictures the sample is made of: 1 to kMaxSources.
  virtual int sources(const SampleKey& key, const SampleShape& shape) const = 0;
  virtual std::unique_ptr<SampleScratch> new_scratch() const = 0;
  /// What new_scratch() grows to, beside the decoded pictures.
  virtual Bytes scratch_bytes(const SampleShape& shape) const = 0;
  /// Writes pixels [channels][net_h][net_w] in [0, 1] and truth [truth_floats] from sources(key)
  /// pictures of shape.channels channels.
  virtual void make(const SampleKey& key, const SampleShape& shape,
                    std::span<const SourceImage> sources, SampleScratch& scratch,
                    std::span<float> pixels, std::span<float> truth) const = 0;
};

}  // namespace lantern::data
