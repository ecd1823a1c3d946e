#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = LocalAvgpoolSpec;
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
      .doc = "Cells added on both sides together; they do not count in the mean."},
};

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  if (!check_pool_window(context, layer, s.size, s.padding)) return;
  layer.out = pooled(layer.in, s.size, s.padding, s.stride_x, s.stride_y);
  layer.bflops = 1.0 * s.size * s.size * static_cast<double>(layer.out.elements()) / 1e9;
}

constexpr std::string_view kAliases[] = {"local_avg"};

}  // namespace

extern const LayerDef kLocalAvgpool;
const LayerDef kLocalAvgpool{.name = "local_avgpool",
                             .aliases = kAliases,
                             .doc = "Mean of each window.",
                             .keys = keys_of<S, kKeys>,
                             .read = read_as<S, kKeys>,
                             .references = nullptr,
                             .shape = shape,
                             .parameters = nullptr};

}  // namespace lantern::layers
