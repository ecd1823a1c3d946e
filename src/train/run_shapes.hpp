#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "data/loader.hpp"
#include "layers/network.hpp"
#include "train/multi_scale.hpp"

namespace lantern::train {

/// Size and mini-batch of every block of ten iterations, fixed before the first one.
class RunShapes {
 public:
  /// Most images of a mini-batch that the memory holds, by width and height; none where it has
  /// room.
  using Caps = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;
  RunShapes(const layers::Network& network, const MultiScale& scale, Caps caps = {});

  NetSize size(std::int64_t iteration) const;
  std::int64_t mini_batch(std::int64_t iteration) const;
  /// Of one iteration: its mini-batches together.
  std::int64_t images(std::int64_t iteration) const;
  std::int64_t largest_images() const;
  /// By size, for a cap that is not known yet.
  std::int64_t mini_batch_of(NetSize size, std::int64_t cap) const;
  std::int64_t mini_batch_of(NetSize size) const;
  data::IterationShape loader_shape(std::int64_t iteration) const;

 private:
  MultiScale scale_;
  Caps caps_;
  std::int64_t subdivisions_, base_;
  bool dynamic_;                           ///< dynamic_minibatch=1: smaller sizes, more images
  std::vector<std::int64_t> first_image_;  ///< by block, when dynamic
};

}  // namespace lantern::train
