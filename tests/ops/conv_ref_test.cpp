#include "ops/conv/conv_ref.hpp"

#include "ops/finite_difference.hpp"

namespace lantern::ops {
namespace {

using test::Values;

ConvGeometry random_geometry(Rng& rng) {
  ConvGeometry g;
  g.groups = rng.uniform_int(1, 3);
  g.n = rng.uniform_int(1, 2);
  g.ic = g.groups * rng.uniform_int(1, 2);
  g.oc = g.groups * rng.uniform_int(1, 2);
  g.kh = rng.uniform_int(1, 3);
  g.kw = rng.uniform_int(1, 3);
  g.sh = rng.uniform_int(1, 3);
  g.sw = rng.uniform_int(1, 3);
  g.dh = rng.uniform_int(1, 2);
  g.dw = rng.uniform_int(1, 2);
  g.ph = rng.uniform_int(0, 2);
  g.pw = rng.uniform_int(0, 2);
  g.ih = rng.uniform_int(3, 7);
  g.iw = rng.uniform_int(3, 7);
  // The last output may read beyond the declared bottom and right padding (a cfg's formula ignores
  // dilation).
  g.oh = std::max<std::int64_t>(1, (g.ih + 2 * g.ph - g.kh) / g.sh + 1);
  g.ow = std::max<std::int64_t>(1, (g.iw + 2 * g.pw - g.kw) / g.sw + 1);
  return g;
}

// A second formulation: dense kernel with explicit zeros for dilation and groups, over an
// explicitly padded input.
Values padded_dense_conv(const ConvGeometry& g, const Values& src, const Values& weights,
                         const Values& bias) {
  const std::int64_t fh = (g.kh - 1) * g.dh + 1;
  const std::int64_t fw = (g.kw - 1) * g.dw + 1;
  const std::int64_t hh = std::max(g.ih + g.ph, (g.oh - 1) * g.sh + fh);
  const std::int64_t ww = std::max(g.iw + g.pw, (g.ow - 1) * g.sw + fw);
  Values padded(static_cast<std::size_t>(g.n * g.ic * hh * ww), 0.0);
  for (std::int64_t p = 0; p < g.n * g.ic; ++p) {
    for (std::int64_t y = 0; y < g.ih; ++y) {
      for (std::int64_t x = 0; x < g.iw; ++x) {
        padded.at(static_cast<std::size_t>((p * hh + y + g.ph) * ww + x + g.pw)) =
            src[static_cast<std::size_t>((p * g.ih + y) * g.iw + x)];
      }
    }
  }
  Values dense(static_cast<std::size_t>(g.oc * g.ic * fh * fw), 0.0);
  std::size_t next = 0;
  for (std::int64_t o = 0; o < g.oc; ++o) {
    const std::int64_t first = o / (g.oc / g.groups) * (g.ic / g.groups);
    for (std::int64_t c = first; c < first + g.ic / g.groups; ++c) {
      for (std::int64_t ky = 0; ky < g.kh; ++ky) {
        for (std::int64_t kx = 0; kx < g.kw; ++kx) {
          dense.at(static_cast<std::size_t>(((o * g.ic + c) * fh + ky * g.dh) * fw + kx * g.dw)) =
              weights[next++];
        }
      }
    }
  }
  Values dst;
  for (std::int64_t b = 0; b < g.n; ++b) {
    for (std::int64_t o = 0; o < g.oc; ++o) {
      for (std::int64_t y = 0; y < g.oh; ++y) {
        for (std::int64_t x = 0; x < g.ow; ++x) {
          double sum = bias[static_cast<std::size_t>(o)];
          for (std::int64_t c = 0; c < g.ic; ++c) {
            for (std::int64_t ky = 0; ky < fh; ++ky) {
              for (std::int64_t kx = 0; kx < fw; ++kx) {
                sum += dense[static_cast<std::size_t>(((o * g.ic + c) * fh + ky) * fw + kx)] *
                       padded[static_cast<std::size_t>(((b * g.ic + c) * hh + y * g.sh + ky) * ww +
                                                       x * g.sw + kx)];
              }
            }
          }
          dst.push_back(sum);
        }
      }
    }
  }
  return dst;
}

TEST(ConvRef, ForwardOfASmallExample) {
  // 3x3 input 1..9, kernel [1 2; 3 4], no padding: 1*1 + 2*2 + 4*3 + 5*4 = 37.
  ConvGeometry g{.ih = 3, .iw = 3, .oh = 2, .ow = 2, .kh = 2, .kw = 2};
  const Values src{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Values weights{1, 2, 3, 4};
  Values dst(4);
  ref::conv_forward<double>(g, src.data(), weights.data(), nullptr, dst.data());
  EXPECT_EQ(dst, (Values{37, 47, 67, 77}));
}

TEST(ConvRef, ForwardMatchesADensePaddedFormulation) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, "conv_ref_forward");
    const ConvGeometry g = random_geometry(rng);
    const Values src = test::random_values(rng, g.n * g.ic * g.ih * g.iw);
    const Values weights = test::random_values(rng, g.weights_count());
    const Values bias = test::random_values(rng, g.oc);
    Values dst(static_cast<std::size_t>(g.n * g.oc * g.oh * g.ow));
    ref::conv_forward(g, src.data(), weights.data(), bias.data(), dst.data());
    SCOPED_TRACE(seed);
    test::expect_near(dst, padded_dense_conv(g, src, weights, bias), 1e-13);
  }
}

TEST(ConvRef, GradientsMatchCentralDifferences) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "conv_ref_gradient");
    const ConvGeometry g = random_geometry(rng);
    const std::int64_t out = g.n * g.oc * g.oh * g.ow;
    Values src = test::random_values(rng, g.n * g.ic * g.ih * g.iw);
    Values weights = test::random_values(rng, g.weights_count());
    Values bias = test::random_values(rng, g.oc);
    const Values d = test::random_values(rng, out);
    Values dst(static_cast<std::size_t>(out));
    const auto loss = [&] {
      ref::conv_forward(g, src.data(), weights.data(), bias.data(), dst.data());
      return test::dot(d, dst);
    };
    const Values diff_src = test::added(static_cast<std::int64_t>(src.size()), [&](double* p) {
      ref::conv_backward_data(g, d.data(), weights.data(), p);
    });
    const Values diff_weights = test::added(g.weights_count(), [&](double* p) {
      ref::conv_backward_weights<double>(g, src.data(), d.data(), p, nullptr);
    });
    const Values diff_bias = test::added(g.oc, [&](double* p) {
      Values ignored(weights.size());
      ref::conv_backward_weights(g, src.data(), d.data(), ignored.data(), p);
    });
    test::expect_gradient("src", src, diff_src, loss);
    test::expect_gradient("weights", weights, diff_weights, loss);
    test::expect_gradient("bias", bias, diff_bias, loss);
  }
}

}  // namespace
}  // namespace lantern::ops
