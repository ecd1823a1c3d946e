#pragma once

#include <cstdint>
#include <string>

#include "core/types.hpp"
#include "ops/activation/activation.hpp"

namespace lantern::ops {

/// What a convolution of an inference program does with its sums before they reach memory:
/// y = last(activation(conv + bias) [+ residual]). Kinds that mix channels are not among them.
struct Epilogue {
  Activation activation = Activation::kLinear;
  bool residual = false;  ///< one more input, of the shape of the output, is added
  Activation last = Activation::kLinear;

  bool is_empty() const {
    return activation == Activation::kLinear && !residual && last == Activation::kLinear;
  }
  std::string describe() const;
};

/// The same in a pass of its own over `images` images of y [.., c, h, w] in channel blocks, for
/// kernels that cannot do it on the way. `residual` may be null.
void apply_epilogue(const Epilogue& epilogue, const Shape& shape, int block, const float* residual,
                    float* y, std::int64_t images, int threads);

}  // namespace lantern::ops
