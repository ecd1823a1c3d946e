#include <numeric>
#include <set>

#include "ops/concat/concat_ref.hpp"
#include "ops/finite_difference.hpp"
#include "ops/reorg/reorg_ref.hpp"
#include "ops/upsample/upsample_ref.hpp"

// Ops that move values without mixing them by learned numbers: upsample, concat, reorg.

namespace lantern::ops {
namespace {

using test::Values;

Values counting(std::int64_t count) {
  Values v(static_cast<std::size_t>(count));
  std::iota(v.begin(), v.end(), 0.0);
  return v;
}

TEST(UpsampleRef, RepeatsCellsOrSumsBlocks) {
  const Values src{1, 2, 3, 4};
  Values up(16);
  ref::upsample_forward(1, 1, 2, 2, 2, 0.5, src.data(), up.data());
  EXPECT_EQ(up, (Values{.5, .5, 1, 1, .5, .5, 1, 1, 1.5, 1.5, 2, 2, 1.5, 1.5, 2, 2}));
  // 2 x 5 with stride -2: the fifth column belongs to no block.
  const Values wide{1, 2, 3, 4, 100, 5, 6, 7, 8, 100};
  Values down(2);
  ref::upsample_forward(1, 1, 2, 5, -2, 2.0, wide.data(), down.data());
  EXPECT_EQ(down, (Values{2 * (1 + 2 + 5 + 6), 2 * (3 + 4 + 7 + 8)}));
}

TEST(UpsampleRef, PlanesAndSidesAreIndependent) {
  const Values src{1, 2, 3, 4};  // two samples of 1 x 1 x 2
  Values up(16);
  ref::upsample_forward(2, 1, 1, 2, 2, 1.0, src.data(), up.data());
  EXPECT_EQ(up, (Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}

TEST(UpsampleRef, GradientsMatchCentralDifferences) {
  Rng rng(1, "upsample_ref_test");
  for (const std::int64_t stride : {1, 2, 3, -1, -2, -3}) {
    SCOPED_TRACE(stride);
    const std::int64_t n = 2, c = 2, h = 7, w = 5;
    Values src = test::random_values(rng, n * c * h * w);
    const Values d = test::random_values(
        rng, n * c * ref::upsample_side(h, stride) * ref::upsample_side(w, stride));
    Values dst(d.size());
    const auto loss = [&] {
      ref::upsample_forward(n, c, h, w, stride, 0.7, src.data(), dst.data());
      return test::dot(d, dst);
    };
    const Values diff_src = test::added(n * c * h * w, [&](double* p) {
      ref::upsample_backward(n, c, h, w, stride, 0.7, d.data(), p);
    });
    test::expect_gradient("src", src, diff_src, loss);
  }
}

TEST(ConcatRef, TakesTheSameGroupOfEverySourcePerSample) {
  // Two samples; sources of 4 and 2 channels, the second of two groups, one pixel.
  const Values a{0, 1, 2, 3, 4, 5, 6, 7};
  const Values b{10, 11, 12, 13};
  const std::vector<ref::ChannelSlice> slices{ref::channel_group(4, 2, 1),
                                              ref::channel_group(2, 2, 1)};
  ASSERT_EQ(ref::concat_channels(slices), 3);
  const std::vector<const double*> sources{a.data(), b.data()};
  Values dst(6);
  ref::concat_forward<double>(2, 1, slices, sources, dst.data());
  EXPECT_EQ(dst, (Values{2, 3, 11, 6, 7, 13}));
}

TEST(ConcatRef, GradientsMatchCentralDifferences) {
  Rng rng(2, "concat_ref_test");
  const std::int64_t n = 2, spatial = 6;
  const std::vector<ref::ChannelSlice> slices{{3, 0, 3}, {4, 2, 2}, {5, 1, 1}};
  std::vector<Values> inputs;
  for (const auto& s : slices) inputs.push_back(test::random_values(rng, n * s.channels * spatial));
  const Values d = test::random_values(rng, n * ref::concat_channels(slices) * spatial);
  Values dst(d.size());
  const auto loss = [&] {
    const std::vector<const double*> sources{inputs[0].data(), inputs[1].data(), inputs[2].data()};
    ref::concat_forward<double>(n, spatial, slices, sources, dst.data());
    return test::dot(d, dst);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Values diff = test::added(static_cast<std::int64_t>(inputs[i].size()), [&](double* p) {
      std::vector<double*> outputs(3, nullptr);
      outputs[i] = p;
      ref::concat_backward<double>(n, spatial, slices, d.data(), outputs);
    });
    test::expect_gradient("source", inputs[i], diff, loss);
  }
}

TEST(ConcatRef, ASourceUsedTwiceReceivesBothSlices) {
  const std::vector<ref::ChannelSlice> slices{{2, 0, 2}, {2, 1, 1}};
  const Values d{1, 2, 4};
  Values diff(2, 0.0);
  const std::vector<double*> outputs{diff.data(), diff.data()};
  ref::concat_backward<double>(1, 1, slices, d.data(), outputs);
  EXPECT_EQ(diff, (Values{1, 6}));
}

TEST(ReorgRef, TheExampleOfTheFormat) {
  // s = 2, values 0..31: reorg on 8 x 2 x 2 and reorg3d on 2 x 4 x 4 both give this.
  const Values want{0, 2, 8,  10, 16, 18, 24, 26, 1, 3, 9,  11, 17, 19, 25, 27,
                    4, 6, 12, 14, 20, 22, 28, 30, 5, 7, 13, 15, 21, 23, 29, 31};
  const Values src = counting(32);
  Values dst(32);
  ref::reorg_forward(ref::ReorgKind::kReorg, 1, 8, 2, 2, 2, src.data(), dst.data());
  EXPECT_EQ(dst, want);
  ref::reorg_forward(ref::ReorgKind::kSpaceToDepth, 1, 2, 4, 4, 2, src.data(), dst.data());
  EXPECT_EQ(dst, want);
}

TEST(ReorgRef, ReorgFollowsItsDefinitionOnOtherShapes) {
  // B[k, j, i] = x'[k mod q, j s + dy, i s + dx], o = k div q, x' the source read as q x (h s) x (w
  // s).
  const std::int64_t c = 18, h = 6, w = 3, s = 3, q = 2;
  const Values src = counting(c * h * w);
  Values dst(src.size());
  ref::reorg_forward(ref::ReorgKind::kReorg, 1, c, h, w, s, src.data(), dst.data());
  std::size_t at = 0;
  for (std::int64_t k = 0; k < c; ++k) {
    for (std::int64_t j = 0; j < h; ++j) {
      for (std::int64_t i = 0; i < w; ++i) {
        const std::int64_t dy = (k / q) / s, dx = (k / q) % s;
        const std::int64_t row = j * s + dy, column = i * s + dx;
        ASSERT_EQ(dst[at++], static_cast<double>((k % q) * h * s * w * s + row * w * s + column));
      }
    }
  }
}

TEST(ReorgRef, DepthToSpaceInvertsSpaceToDepth) {
  const std::int64_t n = 2, c = 3, h = 6, w = 9, s = 3;
  const Values src = counting(n * c * h * w);
  Values deep(src.size());
  Values back(src.size());
  ref::reorg_forward(ref::ReorgKind::kSpaceToDepth, n, c, h, w, s, src.data(), deep.data());
  ref::reorg_forward(ref::ReorgKind::kDepthToSpace, n, c * s * s, h / s, w / s, s, deep.data(),
                     back.data());
  EXPECT_EQ(back, src);
  EXPECT_NE(deep, src);
}

TEST(ReorgRef, GradientsMatchCentralDifferences) {
  Rng rng(3, "reorg_ref_test");
  const std::int64_t n = 2, c = 8, h = 4, w = 6, s = 2;
  for (const auto kind :
       {ref::ReorgKind::kReorg, ref::ReorgKind::kSpaceToDepth, ref::ReorgKind::kDepthToSpace}) {
    Values src = test::random_values(rng, n * c * h * w);
    const Values d = test::random_values(rng, n * c * h * w);
    Values dst(d.size());
    const auto loss = [&] {
      ref::reorg_forward(kind, n, c, h, w, s, src.data(), dst.data());
      return test::dot(d, dst);
    };
    const Values diff_src = test::added(
        n * c * h * w, [&](double* p) { ref::reorg_backward(kind, n, c, h, w, s, d.data(), p); });
    test::expect_gradient("src", src, diff_src, loss);
    std::set<std::int64_t> indices;
    for (std::int64_t i = 0; i < c * h * w; ++i) {
      indices.insert(ref::reorg_source(kind, c, h, w, s, i));
    }
    EXPECT_EQ(static_cast<std::int64_t>(indices.size()), c * h * w) << "not a permutation";
    EXPECT_EQ(*indices.begin(), 0);
    EXPECT_EQ(*indices.rbegin(), c * h * w - 1);
  }
}

}  // namespace
}  // namespace lantern::ops
