#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = MaxpoolSpec;
using K = cfg::Key<S>;
using cfg::from;

constexpr auto kStride = from("= stride", [](const auto& s) { return s.stride; });

constexpr std::array kKeys{
    K{.name = "stride",
      .field = &S::stride,
      .otherwise = 1,
      .min = 1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Step between neighbouring windows."},
    K{.name = "stride_x",
      .field = &S::stride_x,
      .otherwise = kStride,
      .min = 1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Horizontal step."},
    K{.name = "stride_y",
      .field = &S::stride_y,
      .otherwise = kStride,
      .min = 1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Vertical step."},
    K{.name = "size",
      .field = &S::size,
      .otherwise = kStride,
      .min = 1,
      .max = kMaxKernel,
      .unit = "px",
      .doc = "Side of the square window."},
    K{.name = "padding",
      .field = &S::padding,
      .otherwise = from("= size - 1", [](const auto& s) { return s.size - 1; }),
      .min = 0,
      .max = 2 * kMaxKernel,
      .unit = "px",
      .doc = "Cells added on both sides together; left and top get padding / 2."},
    K{.name = "maxpool_depth",
      .field = &S::maxpool_depth,
      .doc = "1: maximum over groups of channels, not over space."},
    K{.name = "out_channels",
      .field = &S::out_channels,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output channels when maxpool_depth=1."},
    K{.name = "antialiasing",
      .field = &S::antialiasing,
      .min = 0,
      .max = 2,
      .doc = "Stride 1, then a fixed blur with the stride: 1: 3x3 binomial, 2: 2x2 box."},
    K{.name = "maxpool_zero_nonmax",
      .field = &S::maxpool_zero_nonmax,
      .doc = "1: zero every output that is not the maximum at its own place; needs equal shapes."},
};

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const Dims& in = layer.in;
  if (s.maxpool_depth != 0) {
    if (in.c < s.out_channels) {
      context.error(layer, "out_channels",
                    "out_channels={} is more than the {} channels of the input", s.out_channels,
                    in.c);
      return;
    }
    layer.out = {in.w, in.h, s.out_channels};
    layer.bflops = 1.0 * s.size * s.size * static_cast<double>(layer.out.elements()) / 1e9;
    return;
  }
  const bool blurs = s.antialiasing != 0;
  if (!check_pool_window(context, layer, s.size, s.padding)) return;
  const Dims plain = pooled(in, s.size, s.padding, blurs ? 1 : s.stride_x, blurs ? 1 : s.stride_y);
  layer.bflops = 1.0 * s.size * s.size * static_cast<double>(plain.elements()) / 1e9;
  layer.out = blurs ? blurred(plain, s.antialiasing, s.stride_x, s.stride_y) : plain;
  if (layer.out.w < 1 || layer.out.h < 1) {
    context.error(layer, "antialiasing", "a map of {} is too small for the blur", to_string(plain));
    layer.out = {};
  } else if (s.maxpool_zero_nonmax != 0 && plain != in) {
    context.error(layer, "maxpool_zero_nonmax",
                  "maxpool_zero_nonmax=1 needs output and input of one shape, they are {} "
                  "and {}",
                  to_string(plain), to_string(in));
    layer.out = {};
  }
}

constexpr std::string_view kAliases[] = {"max"};

}  // namespace

extern const LayerDef kMaxpool;
const LayerDef kMaxpool{.name = "maxpool",
                        .aliases = kAliases,
                        .doc = "Largest value of each window.",
                        .keys = keys_of<S, kKeys>,
                        .read = read_as<S, kKeys>,
                        .references = nullptr,
                        .shape = shape,
                        .parameters = nullptr};

}  // namespace lantern::layers
