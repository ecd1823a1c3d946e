#pragma once

#include <memory>
#include <string>

#include "core/types.hpp"

namespace lantern::ops {

/// A layout that only a library can read (weights of a convolution); compared by value.
class OpaqueLayout {
 public:
  virtual ~OpaqueLayout() = default;
  virtual Bytes bytes() const = 0;
  virtual std::string describe() const = 0;
  virtual bool equals(const OpaqueLayout& other) const = 0;
  /// Converts to and from plain row-major values of the logical shape.
  virtual void to_plain(const void* physical, float* plain) const = 0;
  virtual void from_plain(const float* plain, void* physical) const = 0;
};

/// How a tensor lies in memory. Data tensors [N, C, H, W] are stored in channel blocks:
/// [N][ceil(C/block)][H*W][block], lanes beyond C hold zero. Block 1 is plain NCHW.
struct Layout {
  int block = 1;
  std::shared_ptr<const OpaqueLayout> opaque;

  bool operator==(const Layout& other) const {
    if (static_cast<bool>(opaque) != static_cast<bool>(other.opaque)) return false;
    return opaque ? opaque->equals(*other.opaque) : block == other.block;
  }
  std::string describe(const Shape& shape) const;
  /// Bytes of a tensor of this layout. Rank-1 tensors are padded to 16 values so that kernels may
  /// read whole vectors.
  Bytes bytes(const Shape& shape, DType dtype) const;
};

/// Block of activations with the instructions that oneDNN uses on this CPU: 16 with AVX-512,
/// else 8.
int preferred_block();

/// Plain row-major values <-> a layout; shapes of rank other than 4 are copied as they are.
void to_plain(const Layout& layout, const Shape& shape, const float* physical, float* plain);
void from_plain(const Layout& layout, const Shape& shape, const float* plain, float* physical);

}  // namespace lantern::ops
