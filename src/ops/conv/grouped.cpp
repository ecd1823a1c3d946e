#include "ops/conv/grouped.hpp"

#include <algorithm>
#include <string_view>

#include "ops/conv/epilogue_simd.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops::grouped {

namespace {

constexpr int kLanes = OwnConvKernel::kBlock;

// Weights [OC, C, taps] as [OC/16][taps][C][16].
struct GroupPlaces {
  std::int64_t filters = 0, channels = 0, taps = 0;

  static constexpr std::string_view kName = "w:groups";
  bool operator==(const GroupPlaces&) const = default;
  std::int64_t plain_floats() const { return filters * channels * taps; }
  std::int64_t floats() const { return round_up(filters, kLanes) * channels * taps; }
  std::int64_t operator()(std::int64_t plain) const {
    const std::int64_t tap = plain % taps, c = plain / taps % channels;
    const std::int64_t f = plain / taps / channels;
    return ((f / kLanes * taps + tap) * channels + c) * kLanes + f % kLanes;
  }
};

using Float = Vec<kLanes>::Float;
using Int = Vec<kLanes>::Int;
constexpr int kStrip = 8;  // results of a row that are summed together

// C channels a group.
template <int C>
class GroupedKernel final : public OwnConvKernel {
 public:
  GroupedKernel(const ConvParams& params, const Shape& source, int threads)
      : OwnConvKernel(params, source), threads_(threads) {
    for (int c = 0; c < C; ++c) {
      for (int lane = 0; lane < kLanes; ++lane) spread_[c][lane] = lane / C * C + c;
    }
  }

 private:
  void run_image(const ConvImage& image) override {
    const ConvGeometry& g = params().geometry;
    with_activation(params().epilogue.activation, [&](auto act) {
      parallel_for(ceil_div(g.oc, kLanes) * g.oh, threads_, [&](std::int64_t job) {
        for (std::int64_t x = 0; x < g.ow; x += kStrip)
          run_strip(image, job / g.oh, job % g.oh, x, act);
      });
    });
  }

  template <typename Act>
  [[gnu::noinline]] void run_strip(const ConvImage& image, std::int64_t block, std::int64_t y,
                                   std::int64_t x, Act act) const {
    const ConvGeometry& g = params().geometry;
    const float* weights = image.weights + block * g.kh * g.kw * C * kLanes;
    const float* const plane = image.src + block * g.ih * g.iw * kLanes;
    Float sums[kStrip] = {};
    for (std::int64_t ky = 0; ky < g.kh; ++ky) {
      const std::int64_t row = y * g.sh - g.ph + ky * g.dh;
      if (row < 0 || row >= g.ih) {
        weights += g.kw * C * kLanes;
        continue;
      }
      for (std::int64_t kx = 0; kx < g.kw; ++kx, weights += C * kLanes)
        add_tap(plane + row * g.iw * kLanes, x * g.sw - g.pw + kx * g.dw, weights, sums);
    }
    const int used = static_cast<int>(std::min<std::int64_t>(kLanes, g.oc - block * kLanes));
    const Float bias =
        image.bias == nullptr ? Float{} : load_lanes<kLanes>(image.bias + block * kLanes, used);
    const std::int64_t start = ((block * g.oh + y) * g.ow + x) * kLanes;
    const std::int64_t count = std::min<std::int64_t>(kStrip, g.ow - x);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t at = start + r * kLanes;
      const float* const residual = image.residual == nullptr ? nullptr : image.residual + at;
      store<kLanes>(image.dst + at,
                    finished<kLanes>(act, params().epilogue.last, sums[r] + bias, residual, used));
    }
  }

  // `row` is that of the source, `x` the column that the first result reads; zero outside.
  void add_tap(const float* row, std::int64_t x, const float* weights, Float* sums) const {
    const ConvGeometry& g = params().geometry;
    Float source[kStrip];
    if (x >= 0 && x + (kStrip - 1) * g.sw < g.iw) {
      for (int r = 0; r < kStrip; ++r) source[r] = load<kLanes>(row + (x + r * g.sw) * kLanes);
    } else {
      for (int r = 0; r < kStrip; ++r) {
        const std::int64_t column = x + r * g.sw;
        source[r] = column >= 0 && column < g.iw ? load<kLanes>(row + column * kLanes) : Float{};
      }
    }
    for (int c = 0; c < C; ++c) {
      const Float weight = load<kLanes>(weights + c * kLanes);
      for (int r = 0; r < kStrip; ++r) sums[r] += __builtin_shuffle(source[r], spread_[c]) * weight;
    }
  }

  int threads_;
  Int spread_[C];
};

std::unique_ptr<OwnConvKernel> make_kernel(const ConvParams& params, const Shape& source,
                                           int threads) {
  switch (params.geometry.ic / params.geometry.groups) {
    case 2:
      return std::make_unique<GroupedKernel<2>>(params, source, threads);
    case 4:
      return std::make_unique<GroupedKernel<4>>(params, source, threads);
    case 8:
      return std::make_unique<GroupedKernel<8>>(params, source, threads);
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<KernelChoice> choose(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<ConvParams>();
  const ConvGeometry& g = params.geometry;
  if (!kOwnConvIsFast || context.block != kLanes || g.groups == 1 || g.ic != g.oc)
    return std::nullopt;
  std::unique_ptr<OwnConvKernel> kernel =
      make_kernel(params, context.shape(op.inputs[0]), context.threads);
  if (kernel == nullptr) return std::nullopt;
  return choose_placed(op, context, "grouped", GroupPlaces{g.oc, g.ic / g.groups, g.kh * g.kw}, {},
                       std::move(kernel));
}

}  // namespace lantern::ops::grouped
