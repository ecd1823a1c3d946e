#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ops/conv/conv.hpp"
#include "ops/op_runner.hpp"

// Convolutions to test: geometries, and one layer with its values run forward and backward.

namespace lantern::test {

using graph::TensorId;
using ops::ConvGeometry;
inline std::string to_string(const ConvGeometry& g) {
  const auto size = [](std::int64_t h, std::int64_t w) {
    return std::to_string(h) + "x" + std::to_string(w);
  };
  return "n" + std::to_string(g.n) + " " + std::to_string(g.ic) + "x" + size(g.ih, g.iw) + " -> " +
         std::to_string(g.oc) + "x" + size(g.oh, g.ow) + " kernel " + size(g.kh, g.kw) +
         " stride " + size(g.sh, g.sw) + " pad " + size(g.ph, g.pw) + " dilation " +
         size(g.dh, g.dw) + " groups " + std::to_string(g.groups);
}

// Output sizes as the cfg format has them: what the padding on both sides gives, rows left over
// stay unread.
inline ConvGeometry random_geometry(Rng& rng) {
  ConvGeometry g;
  g.n = rng.uniform_int(1, 9);
  switch (rng.uniform_int(0, 3)) {
    case 0:  // depthwise
      g.groups = rng.uniform_int(1, 35);
      g.ic = g.oc = g.groups;
      break;
    case 1:
      g.groups = rng.uniform_int(2, 4);
      g.ic = g.groups * rng.uniform_int(1, 9);
      g.oc = g.groups * rng.uniform_int(1, 9);
      break;
    default:
      g.ic = rng.uniform_int(1, 35);
      g.oc = rng.uniform_int(1, 35);
  }
  const auto side = [&](std::int64_t& extent, std::int64_t& out, std::int64_t& kernel,
                        std::int64_t& stride, std::int64_t& pad, std::int64_t& dilation) {
    kernel = rng.uniform_int(0, 4) == 0 ? 5 : rng.uniform_int(1, 3);
    stride = rng.uniform_int(1, 3);
    dilation = rng.uniform_int(0, 2) == 0 ? 2 : 1;
    const std::int64_t reach = (kernel - 1) * dilation + 1;
    pad = rng.uniform_int(0, reach / 2);
    extent = std::max<std::int64_t>(1, reach - 2 * pad) + rng.uniform_int(0, 7);
    out = (extent + 2 * pad - reach) / stride + 1;
  };
  side(g.ih, g.oh, g.kh, g.sh, g.ph, g.dh);
  side(g.iw, g.ow, g.kw, g.sw, g.pw, g.dw);
  return g;
}

struct ConvRun {
  ConvRun(const ConvGeometry& geometry, bool with_bias, std::uint32_t trial)
      : g(geometry), bias(with_bias) {
    Rng rng(31, "conv values", 0, trial);
    x = random_floats(rng, g.n * g.ic * g.ih * g.iw);
    w = random_floats(rng, g.weights_count());
    b = random_floats(rng, g.oc);
    dy = random_floats(rng, g.n * g.oc * g.oh * g.ow);
  }

  ConvGeometry g;
  bool bias;
  Floats x, w, b, dy;

  struct Result {
    Floats y, dx, dw, db;
  };

  std::unique_ptr<OpRunner> make(const RunnerOptions& options) {
    auto runner = std::make_unique<OpRunner>(options);
    src = runner->source("x", Shape{g.n, g.ic, g.ih, g.iw}, x);
    std::vector<TensorId> inputs{src};
    inputs.push_back(weights = runner->parameter("w", Shape{g.oc, g.ic / g.groups, g.kh, g.kw}, w));
    if (bias) inputs.push_back(biases = runner->parameter("b", Shape{g.oc}, b));
    dst = runner->op(ops::kConvForward, std::make_shared<const ops::ConvParams>(g, bias), inputs,
                     "y")[0];
    runner->keep(dst);
    runner->differentiate({{dst, dy}});
    return runner;
  }
  Result result(const OpRunner& runner) const {
    Result r{runner.value(dst), runner.gradient(src), runner.gradient(weights), {}};
    if (bias) r.db = runner.gradient(biases);
    return r;
  }
  /// Also says which kernels ran forward and backward data.
  Result run(const RunnerOptions& options) {
    const auto runner = make(options);
    runner->run();
    exact_kernels = true;
    for (const graph::SelectedOp& op : runner->executor().selected().ops) {
      if (op.op != "conv_forward" && op.op != "conv_backward_data") continue;
      exact_kernels = exact_kernels && op.kernel.starts_with("onednn:jit");
    }
    return result(*runner);
  }
  /// The library's direct kernels add up the products of an output in one order. Its im2col path
  /// cuts them by the team size and the number of images.
  bool exact_kernels = false;

  TensorId src{}, weights{}, biases{}, dst{};
};

/// Square kernel with the usual padding (k - 1) / 2.
inline ConvGeometry square(std::int64_t n, std::int64_t ic, std::int64_t side, std::int64_t oc,
                           std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1) {
  ConvGeometry g{.n = n, .ic = ic, .ih = side, .iw = side, .oc = oc};
  g.groups = groups;
  g.kh = g.kw = kernel;
  g.sh = g.sw = stride;
  g.ph = g.pw = (kernel - 1) / 2;
  g.oh = g.ow = (side + 2 * g.ph - kernel) / stride + 1;
  return g;
}

/// What stock nets are made of: images of 3 channels, 1x1 and 3x3 over whole and broken channel
/// blocks, depthwise.
inline std::vector<ConvGeometry> stock_geometries() {
  return {square(3, 3, 20, 16, 3),  square(3, 3, 20, 32, 3, 2), square(5, 32, 12, 48, 3),
          square(6, 64, 9, 255, 1), square(2, 128, 13, 32, 1),  square(4, 32, 12, 32, 3, 2, 32)};
}

}  // namespace lantern::test
