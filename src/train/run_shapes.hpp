#pragma once

#include <cstdint>
#include <vector>

#include "data/loader.hpp"
#include "layers/network.hpp"
#include "train/multi_scale.hpp"

namespace lantern::train {

/// Size and mini-batch of every block of ten iterations, fixed before the first one.
class RunShapes {
 public:
  RunShapes(const layers::Network& network, const MultiScale& scale);

  NetSize size(std::int64_t iteration) const;
  std::int64_t mini_batch(std::int64_t iteration) const;
  /// Of one iteration: its mini-batches together.
  std::int64_t images(std::int64_t iteration) const;
  std::int64_t largest_images() const;
  data::IterationShape loader_shape(std::int64_t iteration) const;

 private:
  std::int64_t mini_batch_of(NetSize size) const;

  MultiScale scale_;
  std::int64_t subdivisions_, base_;
  bool dynamic_;                           ///< dynamic_minibatch=1: smaller sizes, more images
  std::vector<std::int64_t> first_image_;  ///< by block, when dynamic
};

}  // namespace lantern::train
