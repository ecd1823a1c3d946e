// Max pooling of the engine against the reference loops: the bits must agree.

#include "ops/max_pool/max_pool.hpp"

#include <limits>

#include "ops/max_pool/max_pool_ref.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::PoolGeometry;

// Ties, infinities and negative values: pooled values must come from the map, never from the
// padding.
Floats pool_values(Rng& rng, std::int64_t count) {
  Floats values = random_floats(rng, count, -9, -1);
  for (float& v : values) {
    if (rng.coin()) v = std::round(v);
    if (rng.uniform_int(0, 40) == 0) v = -std::numeric_limits<float>::infinity();
    if (rng.uniform_int(0, 40) == 0) v = std::numeric_limits<float>::infinity();
  }
  return values;
}

struct PoolRun {
  Floats y, dx;
};
PoolRun run_pool(const PoolGeometry& g, const Floats& x, const Floats& dy,
                 const RunnerOptions& options) {
  OpRunner runner(options);
  const TensorId src = runner.source("x", Shape{g.n, g.c, g.ih, g.iw}, x);
  const auto dst =
      runner.op(ops::kMaxPoolForward, std::make_shared<const ops::PoolParams>(g, true), {src}, "y");
  EXPECT_EQ(runner.graph().type(dst[1]).dtype, g.kh * g.kw <= 256 ? DType::kU8 : DType::kI32);
  runner.keep(dst[0]);
  runner.differentiate({{dst[0], dy}});
  runner.run();
  return {runner.value(dst[0]), runner.gradient(src)};
}

void check_against_reference(const PoolGeometry& g, std::uint32_t trial) {
  for_each_way([&](const RunnerOptions& options) {
    SCOPED_TRACE(::testing::Message()
                 << g.n << "x" << g.c << "x" << g.ih << "x" << g.iw << " window " << g.kh << "x"
                 << g.kw << " stride " << g.sh << "x" << g.sw << " pad " << g.ph << "x" << g.pw
                 << " -> " << g.oh << "x" << g.ow);
    Rng rng(41, "pool values", 0, trial);
    const Floats x = pool_values(rng, g.n * g.c * g.ih * g.iw);
    const Floats dy = random_floats(rng, g.n * g.c * g.oh * g.ow);
    Floats y(dy.size());
    Floats dx = initial_gradient(options, Shape{g.n, g.c, g.ih, g.iw});
    std::vector<std::uint16_t> index(dy.size());
    ops::ref::max_pool_forward(g, x.data(), y.data(), index.data());
    ops::ref::max_pool_backward(g, dy.data(), index.data(), dx.data());
    const PoolRun r = run_pool(g, x, dy, options);
    ASSERT_EQ(r.y, y);
    ASSERT_EQ(r.dx, dx);
    // Inference keeps no index.
    OpRunner inference(options);
    const TensorId src = inference.source("x", Shape{g.n, g.c, g.ih, g.iw}, x);
    const auto dst = inference.op(ops::kMaxPoolForward,
                                  std::make_shared<const ops::PoolParams>(g, false), {src}, "y");
    inference.keep(dst[0]);
    inference.run();
    ASSERT_EQ(inference.value(dst[0]), y);
  });
}

TEST(MaxPool, MatchesTheReferenceOnRandomWindows) {
  for (std::uint32_t trial = 0; trial < 40; ++trial) {
    Rng rng(40, "pool", 0, trial);
    PoolGeometry g;
    g.n = rng.uniform_int(1, 3);
    g.c = rng.uniform_int(1, 35);
    // Padding in all, half of it on top; large ones make windows that cover no cell.
    const auto side = [&](std::int64_t& in, std::int64_t& out, std::int64_t& kernel,
                          std::int64_t& stride, std::int64_t& pad) {
      in = rng.uniform_int(1, 9);
      kernel = rng.uniform_int(1, 4);
      stride = rng.uniform_int(1, 5);
      const std::int64_t padding = std::max(rng.uniform_int(0, 2 * kernel + 1), kernel - in);
      pad = padding / 2;
      out = (in + padding - kernel) / stride + 1;
    };
    side(g.ih, g.oh, g.kh, g.sh, g.ph);
    side(g.iw, g.ow, g.kw, g.sw, g.pw);
    check_against_reference(g, trial);
    if (HasFatalFailure()) return;
  }
}

TEST(MaxPool, MatchesTheReferenceOnWindowsOfStockNets) {
  // The size 2 stride 1 layer of yolov3-tiny, the ordinary halving (even and odd maps), the SPP
  // windows.
  const auto geometry = [](std::int64_t map, std::int64_t size, std::int64_t stride) {
    const std::int64_t out = (map - 1) / stride + 1;
    return PoolGeometry{.n = 2,
                        .c = 18,
                        .ih = map,
                        .iw = map,
                        .oh = out,
                        .ow = out,
                        .kh = size,
                        .kw = size,
                        .sh = stride,
                        .sw = stride,
                        .ph = (size - 1) / 2,
                        .pw = (size - 1) / 2};
  };
  std::uint32_t trial = 100;
  for (const PoolGeometry& g :
       {geometry(13, 2, 1), geometry(14, 2, 2), geometry(13, 2, 2), geometry(13, 5, 1),
        geometry(13, 9, 1), geometry(13, 13, 1), geometry(10, 3, 2)}) {
    check_against_reference(g, trial++);
    if (HasFatalFailure()) return;
  }
}

TEST(MaxPool, IndicesOfWindowsOfMoreThan256CellsAreWide) {
  std::uint32_t trial = 200;
  for (const auto& [kh, kw] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{16, 16}, {17, 17}, {20, 13}}) {
    for (const std::int64_t stride : {1, 20}) {
      const PoolGeometry g{.n = 1,
                           .c = 17,
                           .ih = 24,
                           .iw = 22,
                           .oh = (24 - 1) / stride + 1,
                           .ow = (22 - 1) / stride + 1,
                           .kh = kh,
                           .kw = kw,
                           .sh = stride,
                           .sw = stride,
                           .ph = (kh - 1) / 2,
                           .pw = (kw - 1) / 2};
      check_against_reference(g, trial++);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(MaxPool, OneImageAtATimeGivesTheBitsOfTheWholeBatch) {
  for (const std::int64_t stride : {1, 2}) {
    PoolGeometry g{.n = 5,
                   .c = 21,
                   .ih = 8,
                   .iw = 7,
                   .oh = 7 / stride + 1,
                   .ow = 6 / stride + 1,
                   .kh = 2,
                   .kw = 2,
                   .sh = stride,
                   .sw = stride};
    Rng rng(42, "pool bits");
    const RunnerOptions options{.block = ops::preferred_block(), .threads = 2};
    const Floats x = random_floats(rng, g.n * g.c * g.ih * g.iw);
    const Floats dy = random_floats(rng, g.n * g.c * g.oh * g.ow);
    const PoolRun whole = run_pool(g, x, dy, options);
    const auto part = [](const Floats& values, std::int64_t image) {
      const auto size = static_cast<std::ptrdiff_t>(values.size()) / 5;
      return Floats(values.begin() + image * size, values.begin() + (image + 1) * size);
    };
    g.n = 1;
    for (std::int64_t image = 0; image < 5; ++image) {
      const PoolRun one = run_pool(g, part(x, image), part(dy, image), options);
      EXPECT_EQ(one.y, part(whole.y, image));
      EXPECT_EQ(one.dx, part(whole.dx, image));
    }
  }
}

}  // namespace
}  // namespace lantern::test
