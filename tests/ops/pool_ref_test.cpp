#include <limits>

#include "ops/avg_pool/avg_pool_ref.hpp"
#include "ops/finite_difference.hpp"
#include "ops/max_pool/max_pool_ref.hpp"

namespace lantern::ops {
namespace {

using test::Values;

// A [maxpool] section: `padding` is the total, the left and top offset half of it.
PoolGeometry section(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                     std::int64_t size, std::int64_t stride, std::int64_t padding) {
  return {.n = n,
          .c = c,
          .ih = h,
          .iw = w,
          .oh = (h + padding - size) / stride + 1,
          .ow = (w + padding - size) / stride + 1,
          .kh = size,
          .kw = size,
          .sh = stride,
          .sw = stride,
          .ph = padding / 2,
          .pw = padding / 2};
}

PoolGeometry random_pool(Rng& rng) {
  PoolGeometry g{.n = rng.uniform_int(1, 2), .c = rng.uniform_int(1, 3)};
  g.ih = rng.uniform_int(3, 8);
  g.iw = rng.uniform_int(3, 8);
  g.kh = rng.uniform_int(1, 3);
  g.kw = rng.uniform_int(1, 3);
  g.sh = rng.uniform_int(1, 3);
  g.sw = rng.uniform_int(1, 3);
  g.ph = rng.uniform_int(0, g.kh - 1);
  g.pw = rng.uniform_int(0, g.kw - 1);
  g.oh = (g.ih + 2 * g.ph - g.kh) / g.sh + 1;
  g.ow = (g.iw + 2 * g.pw - g.kw) / g.sw + 1;
  return g;
}

TEST(MaxPoolRef, WindowsOfTheCfgExamples) {
  EXPECT_EQ(section(1, 1, 416, 416, 2, 2, 1).oh, 208);
  EXPECT_EQ(section(1, 1, 13, 13, 2, 1, 1).oh, 13);
  // Size 2 stride 1: the window reaches right and down, the border repeats itself.
  const PoolGeometry g = section(1, 1, 2, 3, 2, 1, 1);
  const Values src{1, 5, 2, 4, 3, 9};
  Values dst(6);
  std::vector<std::uint16_t> index(6);
  ref::max_pool_forward(g, src.data(), dst.data(), index.data());
  EXPECT_EQ(dst, (Values{5, 9, 9, 4, 9, 9}));
  EXPECT_EQ(index, (std::vector<std::uint16_t>{1, 3, 2, 0, 1, 0}));
}

TEST(MaxPoolRef, PlanesAreIndependentAndStridesMayDiffer) {
  // Two samples of 2 x 3, window 1 x 2, stride 2 down and 1 across.
  const PoolGeometry g{
      .n = 2, .ih = 2, .iw = 3, .oh = 1, .ow = 2, .kh = 1, .kw = 2, .sh = 2, .sw = 1};
  const Values src{1, 2, 0, 90, 90, 90, 5, 4, 3, 90, 90, 90};
  Values dst(4);
  std::vector<std::uint16_t> index(4);
  ref::max_pool_forward(g, src.data(), dst.data(), index.data());
  EXPECT_EQ(dst, (Values{2, 2, 5, 4}));
  EXPECT_EQ(index, (std::vector<std::uint16_t>{1, 0, 0, 0}));
  ref::local_avg_pool_forward(g, src.data(), dst.data());
  EXPECT_EQ(dst, (Values{1.5, 1, 4.5, 3.5}));
}

TEST(MaxPoolRef, TiesGoToTheFirstCellOfTheWindow) {
  const PoolGeometry g = section(1, 1, 2, 2, 2, 2, 0);
  const Values src{3, 7, 7, 7};
  Values dst(1);
  std::vector<std::uint16_t> index(1);
  ref::max_pool_forward(g, src.data(), dst.data(), index.data());
  EXPECT_EQ(index[0], 1);
}

TEST(MaxPoolRef, NanAndEmptyWindowsStayInBounds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  PoolGeometry g{.ih = 2, .iw = 2, .oh = 2, .ow = 1, .kh = 2, .kw = 2, .sh = 4, .sw = 1, .ph = 0};
  const Values src{nan, nan, nan, nan};
  Values dst(2);
  std::vector<std::uint16_t> index(2);
  ref::max_pool_forward(g, src.data(), dst.data(), index.data());
  EXPECT_EQ(index[0], 0);
  EXPECT_TRUE(std::isnan(dst[0]));
  EXPECT_EQ(index[1], ref::kNoCell);
  Values diff_src(4, 0.0);
  const Values d{1, 1};
  ref::max_pool_backward(g, d.data(), index.data(), diff_src.data());
  EXPECT_EQ(diff_src, (Values{1, 0, 0, 0}));
}

TEST(MaxPoolRef, GradientsMatchCentralDifferences) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "max_pool_ref_test");
    const PoolGeometry g = seed == 0 ? section(2, 2, 6, 7, 5, 1, 4) : random_pool(rng);
    Values src = test::distinct_values(rng, g.n * g.c * g.ih * g.iw);
    const std::int64_t out = g.n * g.c * g.oh * g.ow;
    const Values d = test::random_values(rng, out);
    Values dst(static_cast<std::size_t>(out));
    std::vector<std::uint16_t> index(static_cast<std::size_t>(out));
    const auto loss = [&] {
      ref::max_pool_forward(g, src.data(), dst.data(), index.data());
      return test::dot(d, dst);
    };
    loss();
    const Values diff_src = test::added(static_cast<std::int64_t>(src.size()), [&](double* p) {
      ref::max_pool_backward(g, d.data(), index.data(), p);
    });
    test::expect_gradient("src", src, diff_src, loss);
  }
}

TEST(MaxPoolDepthRef, TakesEveryOcthChannel) {
  // 5 channels to 2: output 0 from channels 0 2 4, output 1 from 1 3.
  const Values src{1, 9, 4, 2, 3};
  Values dst(2);
  std::vector<std::uint16_t> index(2);
  ref::max_pool_depth_forward(1, 5, 2, 1, src.data(), dst.data(), index.data());
  EXPECT_EQ(dst, (Values{4, 9}));
  EXPECT_EQ(index, (std::vector<std::uint16_t>{1, 0}));
}

TEST(MaxPoolDepthRef, GradientsMatchCentralDifferences) {
  Rng rng(7, "max_pool_depth_ref_test");
  for (const std::int64_t oc : {1, 2, 3, 5}) {
    const std::int64_t n = 2;
    const std::int64_t c = 5;
    const std::int64_t spatial = 6;
    Values src = test::distinct_values(rng, n * c * spatial);
    const Values d = test::random_values(rng, n * oc * spatial);
    Values dst(d.size());
    std::vector<std::uint16_t> index(d.size());
    const auto loss = [&] {
      ref::max_pool_depth_forward(n, c, oc, spatial, src.data(), dst.data(), index.data());
      return test::dot(d, dst);
    };
    loss();
    const Values diff_src = test::added(n * c * spatial, [&](double* p) {
      ref::max_pool_depth_backward(n, c, oc, spatial, d.data(), index.data(), p);
    });
    test::expect_gradient("src", src, diff_src, loss);
  }
}

TEST(AvgPoolRef, LocalMeanCountsValidCellsOnly) {
  // 2x2 input, 3x3 window, padding 2 in total, stride 2: one output, offset 1, all four cells
  // valid.
  PoolGeometry g = section(1, 1, 2, 2, 3, 2, 2);
  const Values src{1, 2, 3, 6};
  Values dst(1);
  ref::local_avg_pool_forward(g, src.data(), dst.data());
  EXPECT_EQ(dst, (Values{3}));
  // Size 2 stride 1: the last row and column see fewer cells.
  g = section(1, 1, 2, 2, 2, 1, 1);
  dst.resize(4);
  ref::local_avg_pool_forward(g, src.data(), dst.data());
  EXPECT_EQ(dst, (Values{3, 4, 4.5, 6}));
}

TEST(AvgPoolRef, LocalGradientsMatchCentralDifferences) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "avg_pool_ref_test");
    const PoolGeometry g = random_pool(rng);
    Values src = test::random_values(rng, g.n * g.c * g.ih * g.iw);
    const Values d = test::random_values(rng, g.n * g.c * g.oh * g.ow);
    Values dst(d.size());
    const auto loss = [&] {
      ref::local_avg_pool_forward(g, src.data(), dst.data());
      return test::dot(d, dst);
    };
    const Values diff_src = test::added(static_cast<std::int64_t>(src.size()), [&](double* p) {
      ref::local_avg_pool_backward(g, d.data(), p);
    });
    test::expect_gradient("src", src, diff_src, loss);
  }
}

TEST(AvgPoolRef, GlobalMeanAndGradient) {
  Rng rng(5, "global_avg_pool_ref_test");
  const Values example{1, 2, 6, 10, 20, 30};
  Values mean(2);
  ref::global_avg_pool_forward(1, 2, 3, example.data(), mean.data());
  EXPECT_EQ(mean, (Values{3, 20}));
  Values src = test::random_values(rng, 2 * 3 * 7);
  const Values d = test::random_values(rng, 2 * 3);
  Values dst(d.size());
  const auto loss = [&] {
    ref::global_avg_pool_forward(2, 3, 7, src.data(), dst.data());
    return test::dot(d, dst);
  };
  const Values diff_src = test::added(
      2 * 3 * 7, [&](double* p) { ref::global_avg_pool_backward(2, 3, 7, d.data(), p); });
  test::expect_gradient("src", src, diff_src, loss);
}

}  // namespace
}  // namespace lantern::ops
