#include <cmath>

#include "ops/blur/blur_ref.hpp"
#include "ops/finite_difference.hpp"
#include "ops/local/local_ref.hpp"
#include "ops/lrn/lrn_ref.hpp"

// References of [normalization], [local] and the blur of antialiasing.

namespace lantern::ops {
namespace {

using test::Values;

TEST(LrnRef, SumsTheWindowOfTheFormula) {
  // Windows of 4: channel c sums c - 1 .. c + 2, clipped.
  const ref::LrnSettings p{.alpha = 0.5, .beta = 1, .kappa = 2, .size = 4};
  const Values x{1, 2, 3, 4, 5};
  Values y(5);
  ref::lrn_forward(p, 1, 5, 1, x.data(), y.data());
  const double squares[] = {1 + 4 + 9, 1 + 4 + 9 + 16, 4 + 9 + 16 + 25, 9 + 16 + 25, 16 + 25};
  for (std::size_t c = 0; c < 5; ++c) EXPECT_NEAR(y[c], x[c] / (2 + 0.5 * squares[c]), 1e-14);
}

TEST(LrnRef, GradientMatchesCentralDifferences) {
  Rng rng(1, "lrn_ref_test");
  for (const std::int64_t size : {1, 2, 3, 5, 6, 20}) {
    SCOPED_TRACE(size);
    const ref::LrnSettings p{.alpha = 0.3, .beta = 0.75, .kappa = 1.5, .size = size};
    const std::int64_t n = 2, c = 7, spatial = 3;
    Values x = test::random_values(rng, n * c * spatial);
    const Values d = test::random_values(rng, n * c * spatial);
    Values y(x.size());
    const auto loss = [&] {
      ref::lrn_forward(p, n, c, spatial, x.data(), y.data());
      return test::dot(d, y);
    };
    const Values dx = test::added(n * c * spatial, [&](double* to) {
      ref::lrn_backward(p, n, c, spatial, x.data(), d.data(), to);
    });
    test::expect_gradient("x", x, dx, loss);
  }
}

TEST(LocalRef, HasWeightsOfItsOwnAtEveryPosition) {
  // One filter of 2x2 over 1x3x2: two positions, the second below the first.
  const ref::LocalGeometry g{.ih = 3, .iw = 2, .oh = 2, .ow = 1, .size = 2};
  const Values src{1, 2, 3, 4, 5, 6};
  const Values weights{1, 10, 100, 1000, 2, 20, 200, 2000};
  const Values bias{0.5, 0.25};
  Values dst(2);
  ref::local_forward(g, src.data(), weights.data(), bias.data(), dst.data());
  EXPECT_EQ(dst, (Values{1 + 20 + 300 + 4000 + 0.5, 6 + 80 + 1000 + 12000 + 0.25}));
}

TEST(LocalRef, WeightsLieByPositionThenFilterAndBiasesByFilter) {
  // Two filters of 1x1 over one row of two cells.
  const ref::LocalGeometry g{.ih = 1, .iw = 2, .filters = 2, .oh = 1, .ow = 2};
  const Values src{3, 5};
  const Values weights{1, 2, 10, 20};  // position 0: filters 0, 1; position 1: filters 0, 1
  const Values bias{0.1, 0.2, 0.3, 0.4};
  Values dst(4);
  ref::local_forward(g, src.data(), weights.data(), bias.data(), dst.data());
  EXPECT_EQ(dst, (Values{3.1, 50.2, 6.3, 100.4}));
}

TEST(LocalRef, GradientsMatchCentralDifferences) {
  Rng rng(2, "local_ref_test");
  for (const std::int64_t pad : {0, 1}) {
    SCOPED_TRACE(pad);
    ref::LocalGeometry g{.n = 2, .c = 2, .ih = 5, .iw = 4, .filters = 3, .size = 3};
    g.pad = pad;
    g.stride = pad + 1;
    g.oh = (g.ih + 2 * pad - 3) / g.stride + 1;
    g.ow = (g.iw + 2 * pad - 3) / g.stride + 1;
    Values x = test::random_values(rng, g.n * g.src_image());
    Values w = test::random_values(rng, g.weights_count());
    Values b = test::random_values(rng, g.dst_image());
    const Values d = test::random_values(rng, g.n * g.dst_image());
    Values y(d.size());
    const auto loss = [&] {
      ref::local_forward(g, x.data(), w.data(), b.data(), y.data());
      return test::dot(d, y);
    };
    Values dw(w.size());
    Values db(b.size());
    ref::local_backward_weights(g, x.data(), d.data(), dw.data(), db.data());
    const Values dx = test::added(static_cast<std::int64_t>(x.size()), [&](double* to) {
      ref::local_backward_data(g, d.data(), w.data(), to);
    });
    test::expect_gradient("x", x, dx, loss);
    test::expect_gradient("w", w, dw, loss);
    test::expect_gradient("b", b, db, loss);
  }
}

TEST(BlurRef, AveragesWithTheBinomialOrTheBox) {
  Values ones(16, 1.0);
  Values dst(4);
  ref::BlurGeometry g{.ih = 4, .iw = 4, .sh = 2, .sw = 2};
  ref::blur_forward(g, ones.data(), dst.data());
  // Zero padding darkens the border: the first row and column lose a quarter of the weights each.
  EXPECT_EQ(dst, (Values{0.5625, 0.75, 0.75, 1}));
  g.kind = ref::BlurKind::kBox;
  const Values src{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  ref::blur_forward(g, src.data(), dst.data());
  EXPECT_EQ(dst, (Values{3.5, 5.5, 11.5, 13.5}));
}

TEST(BlurRef, GradientMatchesCentralDifferences) {
  Rng rng(3, "blur_ref_test");
  for (const ref::BlurKind kind : {ref::BlurKind::kBinomial, ref::BlurKind::kBox}) {
    const ref::BlurGeometry g{.kind = kind, .n = 2, .c = 2, .ih = 6, .iw = 5, .sh = 2, .sw = 1};
    Values x = test::random_values(rng, g.n * g.c * g.ih * g.iw);
    const Values d = test::random_values(rng, g.n * g.c * g.oh() * g.ow());
    Values y(d.size());
    const auto loss = [&] {
      ref::blur_forward(g, x.data(), y.data());
      return test::dot(d, y);
    };
    const Values dx = test::added(static_cast<std::int64_t>(x.size()),
                                  [&](double* to) { ref::blur_backward(g, d.data(), to); });
    test::expect_gradient("x", x, dx, loss);
  }
}

}  // namespace
}  // namespace lantern::ops
