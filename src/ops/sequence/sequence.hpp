#pragma once

#include <vector>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

// A mini-batch of sequences is time-major: image t * n + b is frame t of sequence b. These ops take
// it apart into time steps of n images and put it together again.
namespace lantern::ops {

struct ImageRangeParams final : graph::OpParams {
  ImageRangeParams(std::int64_t f, std::int64_t n, std::int64_t a) : first(f), count(n), all(a) {}
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t all = 0;  ///< images of the whole
  std::string describe() const override;
};

/// y [count,C,H,W] (+)= images [first, first + count) of x [all,C,H,W].
extern const graph::OpDef kSliceImages;
/// Images [first, first + count) of y [all,C,H,W] (+)= x [count,C,H,W]; the other images of y get
/// zero when it is written first.
extern const graph::OpDef kPlaceImages;
/// y = the images of the inputs one behind the other; all inputs have equal shapes.
extern const graph::OpDef kJoinImages;

KernelChoice choose_slice_images(const graph::Op& op, const SelectContext& context);
KernelChoice choose_place_images(const graph::Op& op, const SelectContext& context);
KernelChoice choose_join_images(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
