#include "train/run_shapes.hpp"

#include <algorithm>

namespace lantern::train {

RunShapes::RunShapes(const layers::Network& network, const MultiScale& scale, Caps caps)
    : scale_(scale),
      caps_(std::move(caps)),
      subdivisions_(network.net.subdivisions),
      base_(network.net.batch / network.net.subdivisions),
      dynamic_(network.net.dynamic_minibatch != 0 && scale.is_on()) {
  if (!dynamic_) return;
  std::int64_t images_before = 0;
  for (std::int64_t k = 0; k * kIterationsPerSize < scale.max_batches; ++k) {
    first_image_.push_back(images_before);
    images_before += kIterationsPerSize * images(k * kIterationsPerSize);
  }
}

NetSize RunShapes::size(std::int64_t iteration) const {
  return scale_.is_on() ? size_at(scale_, iteration) : scale_.net;
}

std::int64_t RunShapes::mini_batch_of(NetSize size, std::int64_t cap) const {
  return dynamic_ ? dynamic_minibatch(base_, largest_size(scale_), size, cap) : base_;
}

std::int64_t RunShapes::mini_batch_of(NetSize size) const {
  constexpr std::int64_t kNoCap = std::int64_t{1} << 20;
  const auto found = caps_.find({size.width, size.height});
  return mini_batch_of(size, found == caps_.end() ? kNoCap : found->second);
}

std::int64_t RunShapes::mini_batch(std::int64_t iteration) const {
  return dynamic_ ? mini_batch_of(size(iteration)) : base_;
}

std::int64_t RunShapes::images(std::int64_t iteration) const {
  return mini_batch(iteration) * subdivisions_;
}

std::int64_t RunShapes::largest_images() const {
  std::int64_t largest = base_;
  if (dynamic_) {
    for (const NetSize& size : possible_sizes(scale_))
      largest = std::max(largest, mini_batch_of(size));
  }
  return largest * subdivisions_;
}

data::IterationShape RunShapes::loader_shape(std::int64_t iteration) const {
  const NetSize s = size(iteration);
  std::int64_t first = iteration * base_ * subdivisions_;
  if (dynamic_) {
    const std::int64_t k = iteration / kIterationsPerSize;
    first = first_image_[static_cast<std::size_t>(k)] +
            iteration % kIterationsPerSize * images(iteration);
  }
  return {static_cast<int>(s.width), static_cast<int>(s.height), images(iteration), first};
}

}  // namespace lantern::train
