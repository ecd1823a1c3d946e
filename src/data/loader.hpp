#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "data/image.hpp"
#include "data/resize.hpp"
#include "data/sample_maker.hpp"

namespace lantern::data {

enum class Sampling : std::uint8_t { kPermutation, kReplacement };

/// Index of the image that is the `position`-th (from 0) of a run over `images` images: a fresh
/// permutation each epoch or independent draws. A pure function of (seed, position). Not thread
/// safe (keeps the permutations of two epochs).
class SampleOrder {
 public:
  SampleOrder(std::uint64_t seed, std::int64_t images, Sampling sampling);
  std::int64_t index(std::int64_t position);

 private:
  struct Epoch {
    std::int64_t number = -1;
    std::vector<std::uint32_t> order;
  };
  std::uint64_t seed_;
  std::int64_t images_;
  Sampling sampling_;
  Epoch epochs_[2];
};

/// Shape of one iteration, known in advance (multi-scale training).
struct IterationShape {
  int net_w = 0, net_h = 0;
  std::int64_t images = 0;
  std::int64_t first_image = 0;  ///< images drawn by all iterations before this one
};

struct LoaderSpec {
  std::shared_ptr<const SampleMaker> samples{};
  std::int64_t images_per_iteration = 1;
  /// Shape of an iteration; empty: that of `samples`, images_per_iteration, always.
  std::function<IterationShape(std::int64_t iteration)> shape{};
  /// Largest size and count that `shape` ever returns; 0: as above. Memory is allocated for these,
  /// once.
  int max_w = 0, max_h = 0;
  std::int64_t max_images = 0;
  std::uint64_t seed = 0;
  Sampling sampling = Sampling::kPermutation;
  std::int64_t first_iteration = 0;  ///< where to go on after a resume
  std::int64_t last_iteration = -1;  ///< exclusive; -1: endless
  int threads = 2;
  int queue = 2;                 ///< iterations held ready, each with its own memory
  double bad_data_limit = 0.01;  ///< fraction of the images that may be unreadable
  DecodeOptions decode{};        ///< channels are taken from `samples`
  Bytes memory_left = 0;         ///< what the pictures held ready may take; 0: any amount
};

/// One iteration's input; valid until release().
struct Batch {
  std::int64_t iteration = -1;
  int net_w = 0, net_h = 0, channels = 3;
  std::int64_t count = 0;
  std::span<float> images;  ///< [count, channels, net_h, net_w], values in [0, 1]
  std::span<float> truth;   ///< [count, truth_floats]
  std::vector<std::int64_t>
      indices;  ///< of the first source of each picture, into SampleMaker::images()
  std::vector<std::string_view> paths;  ///< the same as paths
};

struct LoaderStats {
  double seconds_waited = 0;    ///< time next() stood still
  std::int64_t images = 0;      ///< pictures made
  std::int64_t bad_images = 0;  ///< distinct files that could not be used
};

/// Makes batches ahead of the trainer with its own threads (low priority, asleep while the queue is
/// full). The same bits for any thread count, and from any first_iteration.
class TrainingLoader {
 public:
  explicit TrainingLoader(LoaderSpec spec);
  ~TrainingLoader();
  TrainingLoader(const TrainingLoader&) = delete;
  TrainingLoader& operator=(const TrainingLoader&) = delete;

  /// The next iteration's batch; waits for it. Errors of the threads (too many unreadable images)
  /// are thrown here. The batch before must have been released.
  const Batch& next();
  /// Gives the memory of the current batch back to the threads.
  void release();
  LoaderStats stats() const;
  /// Bytes held for batches; does not change while running.
  std::int64_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct EvalLoaderSpec {
  std::vector<std::string> images{};
  EvalSpec eval{};
  std::int64_t batch = 1;
  int threads = 2;
  int queue = 4;
  DecodeOptions decode{};  ///< channels are taken from eval
  Bytes memory_left = 0;   ///< what the pictures held ready may take; 0: any amount
};

struct EvalItem {
  std::int64_t index = -1;  ///< into EvalLoaderSpec::images
  int image_w = 0, image_h = 0;
  std::string error;  ///< not empty: the picture cannot be used (its pixels are 0)
};

/// Consecutive pictures of the list; valid until the next call.
struct EvalBatch {
  std::span<float> images;  ///< [items.size() * views, channels, net_h, net_w]
  std::vector<EvalItem> items;
};

/// Prefetches prepare_eval_image() results, in the order of the list.
class EvalLoader {
 public:
  explicit EvalLoader(EvalLoaderSpec spec);
  ~EvalLoader();
  EvalLoader(const EvalLoader&) = delete;
  EvalLoader& operator=(const EvalLoader&) = delete;

  /// nullptr after the last one.
  const EvalBatch* next();
  LoaderStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lantern::data
