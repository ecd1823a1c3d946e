#pragma once

#include <dnnl.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "ops/conv/conv.hpp"
#include "ops/conv/conv_onednn.hpp"
#include "ops/onednn.hpp"

// What the convolutions of the library have in common; used by conv_*_onednn.cpp only.
namespace lantern::ops::conv {

using dnnl::memory;
using dnnl::prop_kind;

inline constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

inline memory::dims weight_dims(const ConvGeometry& g) {
  if (g.groups == 1) return {g.oc, g.ic, g.kh, g.kw};
  return {g.groups, g.oc / g.groups, g.ic / g.groups, g.kh, g.kw};
}

inline memory::desc any_weights(const ConvGeometry& g) {
  return {weight_dims(g), memory::data_type::f32, memory::format_tag::any};
}

struct Window {
  memory::dims strides, dilates, pad_left, pad_right;
};

// The output size is given, so bottom and right padding are what is left over (may be negative:
// unread rows).
inline Window window_of(const ConvGeometry& g) {
  const std::int64_t reach_h = (g.kh - 1) * g.dh + 1;
  const std::int64_t reach_w = (g.kw - 1) * g.dw + 1;
  return {{g.sh, g.sw},
          {g.dh - 1, g.dw - 1},
          {g.ph, g.pw},
          {(g.oh - 1) * g.sh + reach_h - g.ih - g.ph, (g.ow - 1) * g.sw + reach_w - g.iw - g.pw}};
}

inline ConvGeometry with_images(ConvGeometry g, std::int64_t images) {
  g.n = images;
  return g;
}

inline Shape src_shape(const ConvGeometry& g) { return {g.n, g.ic, g.ih, g.iw}; }
inline Shape dst_shape(const ConvGeometry& g) { return {g.n, g.oc, g.oh, g.ow}; }

inline Bytes image_bytes(const Shape& shape, int block) {
  return Layout{.block = block}.bytes(Shape{1, shape.c(), shape.h(), shape.w()}, DType::kF32);
}

/// A descriptor with the data blocks it was made for.
template <typename Pd>
struct Candidate {
  Pd pd;
  int src_block = 1;
  int dst_block = 1;
};

// The first candidate with the best rank (jit before gemm before ref); `make` returns an empty
// descriptor when oneDNN has no implementation. Nothing when there is none at all.
template <typename Pd, typename Make>
std::optional<Candidate<Pd>> best_of(std::initializer_list<std::pair<int, int>> blocks,
                                     const Make& make) {
  std::optional<Candidate<Pd>> best;
  int best_rank = 3;
  for (const auto& [src_block, dst_block] : blocks) {
    Pd pd = make(src_block, dst_block);
    if (!pd) continue;
    const int rank = onednn::implementation_rank(pd.impl_info_str());
    if (rank < best_rank) {
      best = Candidate<Pd>{std::move(pd), src_block, dst_block};
      best_rank = rank;
    }
    if (best_rank == 0) break;
  }
  return best;
}

// Calls of one convolution, made for every number of images that runs have asked for.
template <typename Make>
class CallsBySize {
 public:
  CallsBySize(Make make, std::int64_t expected) : make_(std::move(make)) { at(expected); }
  onednn::Call& at(std::int64_t images) {
    for (auto& [size, call] : calls_) {
      if (size == images) return *call;
    }
    calls_.emplace_back(images, std::make_unique<onednn::Call>(make_(images)));
    return *calls_.back().second;
  }

 private:
  Make make_;
  std::vector<std::pair<std::int64_t, std::unique_ptr<onednn::Call>>> calls_;
};

inline std::byte* bytes_at(void* operand, Bytes offset) {
  return static_cast<std::byte*>(operand) + offset;
}

// Where the source channels of a convolution stand in a tensor that may have more of them.
struct SourceSlice {
  Bytes offset = 0;  // of the first channel inside an image
  Bytes image = 0;   // from an image to the next
  bool is_part = false;

  SourceSlice(const Shape& tensor, const ConvGeometry& g, std::int64_t first, int block)
      : offset(first * g.ih * g.iw * Bytes{sizeof(float)}),
        image(image_bytes(tensor, block)),
        is_part(tensor.c() != g.ic) {}
};

template <template <typename> typename KernelOf, typename Make, typename... Arguments>
std::unique_ptr<Kernel> kernel_of(Make make, Arguments... arguments) {
  return std::make_unique<KernelOf<Make>>(std::move(make), arguments...);
}

inline Bytes bytes_of(const memory::desc& desc) { return static_cast<Bytes>(desc.get_size()); }

// The plan has room for what a call of all images (or of a whole group) needs; smaller ones need
// less.
template <typename Pd>
void require_scratch(const Pd& pd, Bytes planned) {
  LANTERN_ASSERT(bytes_of(pd.scratchpad_desc()) <= planned,
                 "a call of fewer images needs no more scratch memory");
}

// Only the direct convolutions give an image the same bits in a call of any size; the others run
// whole.
inline void run_ranges(KernelChoice& choice, const std::string& implementation,
                       std::int64_t images) {
  if (onednn::implementation_rank(implementation) == 1) {
    choice.kernel = std::make_unique<WholeKernel>(std::move(choice.kernel), images);
  } else {
    choice.images = images;
  }
}

}  // namespace lantern::ops::conv
