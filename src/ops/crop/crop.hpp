#pragma once

#include <array>
#include <cstdint>

#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct CropParams final : graph::OpParams {
  std::int64_t height = 1, width = 1;  ///< of the output
  bool training = false;               ///< random crops; otherwise the centre, unchanged
  int layer = 0;                       ///< tells the draws of several crops apart
  bool flip = false;
  float angle = 0;                     ///< degrees
  float saturation = 1, exposure = 1;  ///< largest factors; their inverses are as likely
  float shift = 0;                     ///< width of the offset of a channel
  bool adjust = true;                  ///< values become 2 v - 1
  std::string describe() const override;
};

/// What is drawn for one image.
struct CropDraw {
  std::int64_t x = 0, y = 0;  ///< left and upper cell of the crop in the source
  bool flip = false;          ///< columns count from the right edge
  float angle = 0;            ///< radians, about the centre of the source
  float saturation = 1, exposure = 1;
  std::array<float, 3> shift{};  ///< added to the channels of the output

  bool changes_colour() const { return saturation != 1 || exposure != 1; }
};

/// A function of (seed, layer, iteration, image of the iteration) only.
CropDraw draw_crop(const CropParams& params, const Shape& src, const RunContext& run,
                   std::int64_t image);

/// src [N,C,H,W] -> dst [N,C,height,width], reference/layers.md 4.16. Colour (three channels only)
/// keeps the hue: with v = max(r, g, b), c becomes exposure * (v + saturation * (c - v)). With an
/// angle cells are interpolated and 0 outside the source. No gradient passes.
/// Darknet: its CPU path draws once for the whole batch and knows neither angle nor colour; here
/// every image has its own draw of all of them, and the source stays as it is.
extern const graph::OpDef kCrop;

KernelChoice choose_crop(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
