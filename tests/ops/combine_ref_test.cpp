#include "ops/add/add_ref.hpp"
#include "ops/conv/conv_ref.hpp"
#include "ops/dropout/dropout_ref.hpp"
#include "ops/finite_difference.hpp"
#include "ops/linear/linear_ref.hpp"
#include "ops/scale/scale_ref.hpp"

// Ops with several inputs or factors: add, scale, dropout, linear.

namespace lantern::ops {
namespace {

using ref::AddNormalization;
using ref::AddParams;
using ref::AddShape;
using ref::AddWeights;
using test::Values;

struct AddCase {
  AddParams p;
  std::vector<Values> inputs;
  Values weights, d;

  AddCase(Rng& rng, AddParams params) : p(std::move(params)) {
    for (const AddShape& s : p.shapes) inputs.push_back(test::random_values(rng, p.n * s.size()));
    const auto count = static_cast<std::int64_t>(p.shapes.size());
    if (p.weights != AddWeights::kNone) weights = test::distinct_values(rng, count * p.sets(), 0.3);
    d = test::random_values(rng, p.n * p.shapes[0].size());
  }
  const double* weights_data() const { return weights.empty() ? nullptr : weights.data(); }
  std::vector<const double*> pointers() const {
    std::vector<const double*> all;
    for (const Values& v : inputs) all.push_back(v.data());
    return all;
  }
  Values forward() const {
    Values dst(d.size());
    ref::add_forward<double>(p, pointers(), weights_data(), dst.data());
    return dst;
  }
  void backward(std::size_t input, double* diff_input, double* diff_weights) const {
    std::vector<double*> outputs(inputs.size(), nullptr);
    if (diff_input != nullptr) outputs[input] = diff_input;
    ref::add_backward<double>(p, pointers(), weights_data(), d.data(), outputs, diff_weights);
  }
};

TEST(AddRef, GradientsMatchCentralDifferences) {
  const std::vector<std::vector<AddShape>> shape_lists{
      {{3, 4, 6}, {3, 4, 6}},
      {{3, 4, 6}, {3, 4, 6}, {3, 4, 6}},
      {{3, 4, 6}, {2, 4, 6}, {5, 4, 6}},
      {{3, 4, 6}, {4, 8, 12}, {2, 2, 3}},
      {{2, 3, 3}, {2, 7, 7}},
      {{1, 2, 2}, {1, 2, 2}},
  };
  Rng rng(1, "add_ref_test");
  for (std::size_t list = 0; list < shape_lists.size(); ++list) {
    for (const auto weights :
         {AddWeights::kNone, AddWeights::kPerFeature, AddWeights::kPerChannel}) {
      for (const auto norm :
           {AddNormalization::kNone, AddNormalization::kRelu, AddNormalization::kSoftmax}) {
        SCOPED_TRACE(testing::Message() << "shapes " << list << " weights " << int(weights)
                                        << " normalization " << int(norm));
        AddCase test(rng, {2, shape_lists[list], weights, norm});
        const auto loss = [&] { return test::dot(test.d, test.forward()); };
        for (std::size_t i = 0; i < test.inputs.size(); ++i) {
          const Values diff = test::added(static_cast<std::int64_t>(test.inputs[i].size()),
                                          [&](double* out) { test.backward(i, out, nullptr); });
          test::expect_gradient("input", test.inputs[i], diff, loss);
        }
        if (weights == AddWeights::kNone) continue;
        const Values diff = test::added(static_cast<std::int64_t>(test.weights.size()),
                                        [&](double* out) { test.backward(0, nullptr, out); });
        test::expect_gradient("weights", test.weights, diff, loss);
      }
    }
  }
}

TEST(AddRef, MismatchedChannelsAndSizesFollowTheClassicRule) {
  // Base 2 x 2 x 2 of zeros; a 1 x 4 x 4 source is read at every second cell, into channel 0 only.
  const AddParams larger{1, {{2, 2, 2}, {1, 4, 4}}};
  const Values zero(8, 0.0);
  Values source(16);
  for (std::size_t i = 0; i < 16; ++i) source[i] = static_cast<double>(i);
  Values dst(8);
  std::vector<const double*> inputs{zero.data(), source.data()};
  ref::add_forward<double>(larger, inputs, nullptr, dst.data());
  EXPECT_EQ(dst, (Values{0, 2, 8, 10, 0, 0, 0, 0}));
  // Base 1 x 4 x 4, a 1 x 2 x 2 source lands on every second cell.
  const AddParams smaller{1, {{1, 4, 4}, {1, 2, 2}}};
  const Values base(16, 100.0);
  const Values small{1, 2, 3, 4};
  inputs = {base.data(), small.data()};
  Values out(16);
  ref::add_forward<double>(smaller, inputs, nullptr, out.data());
  EXPECT_EQ(out, (Values{101, 100, 102, 100, 100, 100, 100, 100, 103, 100, 104, 100, 100, 100, 100,
                         100}));
}

TEST(AddRef, SamplesDoNotMix) {
  const AddParams p{2, {{2, 1, 2}, {1, 1, 2}}};
  const Values base{1, 2, 3, 4, 5, 6, 7, 8};
  const Values source{10, 20, 30, 40};
  const std::vector<const double*> inputs{base.data(), source.data()};
  Values dst(8);
  ref::add_forward<double>(p, inputs, nullptr, dst.data());
  EXPECT_EQ(dst, (Values{11, 22, 3, 4, 35, 46, 7, 8}));
}

TEST(AddRef, NormalisedWeightsAreThoseOfTheFormat) {
  const AddParams relu{
      1, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, AddWeights::kPerFeature, AddNormalization::kRelu};
  const Values raw{1, -5, 2};
  const double sum = 1e-4 + 1 + 0.001 + 2;
  test::expect_near(ref::normalized_weights(relu, raw.data(), 0), {1 / sum, 0.001 / sum, 2 / sum},
                    1e-15);
  AddParams softmax = relu;
  softmax.normalization = AddNormalization::kSoftmax;
  const double denominator = 1e-4 + std::exp(-1.0) + std::exp(-7.0) + 1;
  test::expect_near(ref::normalized_weights(softmax, raw.data(), 0),
                    {std::exp(-1.0) / denominator, std::exp(-7.0) / denominator, 1 / denominator},
                    1e-15);
}

TEST(AddRef, PerChannelWeightsAreInputMajor) {
  const AddParams p{1, {{2, 1, 1}, {2, 1, 1}}, AddWeights::kPerChannel, AddNormalization::kNone};
  const Values a{1, 10};
  const Values b{100, 1000};
  const Values weights{2, 3, 4, 5};  // input 0: channels 2 3, input 1: channels 4 5
  const std::vector<const double*> inputs{a.data(), b.data()};
  Values dst(2);
  ref::add_forward<double>(p, inputs, weights.data(), dst.data());
  EXPECT_EQ(dst, (Values{402, 5030}));
}

TEST(ScaleRef, MultipliesByChannelPixelOrElement) {
  const Values src{1, 2, 3, 4, 5, 6};  // [1, 2, 3]
  Values dst(6);
  const Values channel{10, 100};
  ref::scale_forward(ref::ScaleKind::kPerChannel, 1, 2, 3, src.data(), channel.data(), dst.data());
  EXPECT_EQ(dst, (Values{10, 20, 30, 400, 500, 600}));
  const Values pixel{1, 10, 100};
  ref::scale_forward(ref::ScaleKind::kPerPixel, 1, 2, 3, src.data(), pixel.data(), dst.data());
  EXPECT_EQ(dst, (Values{1, 20, 300, 4, 50, 600}));
  ref::scale_forward(ref::ScaleKind::kElement, 1, 2, 3, src.data(), src.data(), dst.data());
  EXPECT_EQ(dst, (Values{1, 4, 9, 16, 25, 36}));
}

TEST(ScaleRef, EverySampleHasItsOwnFactors) {
  const Values src{1, 2, 3, 4, 5, 6, 7, 8};  // [2, 2, 2]
  Values dst(8);
  const Values factors{1, 10, 100, 1000};
  ref::scale_forward(ref::ScaleKind::kPerChannel, 2, 2, 2, src.data(), factors.data(), dst.data());
  EXPECT_EQ(dst, (Values{1, 2, 30, 40, 500, 600, 7000, 8000}));
  ref::scale_forward(ref::ScaleKind::kPerPixel, 2, 2, 2, src.data(), factors.data(), dst.data());
  EXPECT_EQ(dst, (Values{1, 20, 3, 40, 500, 6000, 700, 8000}));
}

TEST(ScaleRef, GradientsMatchCentralDifferences) {
  Rng rng(2, "scale_ref_test");
  const std::int64_t n = 3, c = 4, spatial = 5, total = n * c * spatial;
  for (const auto kind :
       {ref::ScaleKind::kPerChannel, ref::ScaleKind::kPerPixel, ref::ScaleKind::kElement}) {
    const std::int64_t factors = kind == ref::ScaleKind::kPerChannel ? n * c
                                 : kind == ref::ScaleKind::kPerPixel ? n * spatial
                                                                     : total;
    Values src = test::random_values(rng, total);
    Values scale = test::random_values(rng, factors);
    const Values d = test::random_values(rng, total);
    Values dst(d.size());
    const auto loss = [&] {
      ref::scale_forward(kind, n, c, spatial, src.data(), scale.data(), dst.data());
      return test::dot(d, dst);
    };
    const Values diff_src = test::added(total, [&](double* p) {
      ref::scale_backward<double>(kind, n, c, spatial, src.data(), scale.data(), d.data(), p,
                                  nullptr);
    });
    const Values diff_scale = test::added(factors, [&](double* p) {
      ref::scale_backward<double>(kind, n, c, spatial, src.data(), scale.data(), d.data(), nullptr,
                                  p);
    });
    test::expect_gradient("src", src, diff_src, loss);
    test::expect_gradient("scale", scale, diff_scale, loss);
  }
}

TEST(DropoutRef, BitsAndFactorsAgreeAndGradientsMatch) {
  Rng rng(3, "dropout_ref_test");
  const std::int64_t n = 3, outputs = 11;
  std::vector<std::uint8_t> bits(5);
  for (auto& byte : bits) byte = static_cast<std::uint8_t>(rng.uniform_int(0, 255));
  Values scale(3);
  Values factors(33);
  for (std::int64_t b = 0; b < n; ++b) {
    scale[static_cast<std::size_t>(b)] =
        ref::dropped_scale<double>(bits.data(), b * outputs, outputs);
    for (std::int64_t i = 0; i < outputs; ++i) {
      const std::int64_t at = b * outputs + i;
      const bool is_kept = (bits[static_cast<std::size_t>(at / 8)] & (1 << (at % 8))) != 0;
      factors[static_cast<std::size_t>(at)] = is_kept ? scale[static_cast<std::size_t>(b)] : 0.0;
    }
  }
  Values x = test::random_values(rng, 33);
  const Values d = test::random_values(rng, 33);
  Values y(33);
  Values same(33);
  ref::dropout_bits_forward(n, outputs, bits.data(), scale.data(), x.data(), y.data());
  ref::dropout_forward(33, factors.data(), x.data(), same.data());
  EXPECT_EQ(y, same);
  const auto loss = [&] {
    ref::dropout_bits_forward(n, outputs, bits.data(), scale.data(), x.data(), y.data());
    return test::dot(d, y);
  };
  test::expect_gradient("bits", x,
                        test::added(33,
                                    [&](double* p) {
                                      ref::dropout_bits_backward(n, outputs, bits.data(),
                                                                 scale.data(), d.data(), p);
                                    }),
                        loss);
  test::expect_gradient(
      "factors", x,
      test::added(33, [&](double* p) { ref::dropout_backward(33, factors.data(), d.data(), p); }),
      loss);
}

TEST(DropoutRef, ScaleKeepsTheMeanAndSurvivesAFullDrop) {
  const std::uint8_t bits[2] = {0b00001111, 0};
  EXPECT_EQ(ref::dropped_scale<double>(bits, 0, 8), 2.0);
  EXPECT_EQ(ref::dropped_scale<double>(bits, 8, 8), 0.0);
}

TEST(LinearRef, ForwardOfASmallExample) {
  const Values x{1, 2, 3, -1, 0, 1};          // [2, 3]
  const Values weights{1, 10, 100, 2, 4, 8};  // [2, 3], a row per output
  const Values bias{1000, 0.5};
  Values y(4);
  ref::linear_forward(2, 3, 2, x.data(), weights.data(), bias.data(), y.data());
  EXPECT_EQ(y, (Values{1321, 34.5, 1099, 6.5}));
}

TEST(LinearRef, EqualsAConvolutionOfOnePixelAndGradientsMatch) {
  Rng rng(4, "linear_ref_test");
  const std::int64_t n = 3, in = 7, out = 5;
  Values x = test::random_values(rng, n * in);
  Values weights = test::random_values(rng, in * out);
  Values bias = test::random_values(rng, out);
  const Values d = test::random_values(rng, n * out);
  Values y(d.size());
  const auto loss = [&] {
    ref::linear_forward(n, in, out, x.data(), weights.data(), bias.data(), y.data());
    return test::dot(d, y);
  };
  loss();
  Values conv(y.size());
  ref::conv_forward({.n = n, .ic = in, .oc = out}, x.data(), weights.data(), bias.data(),
                    conv.data());
  test::expect_near(y, conv, 1e-14);
  test::expect_gradient(
      "x", x,
      test::added(
          n * in,
          [&](double* p) { ref::linear_backward_data(n, in, out, d.data(), weights.data(), p); }),
      loss);
  test::expect_gradient("weights", weights,
                        test::added(in * out,
                                    [&](double* p) {
                                      ref::linear_backward_weights<double>(n, in, out, x.data(),
                                                                           d.data(), p, nullptr);
                                    }),
                        loss);
  test::expect_gradient("bias", bias,
                        test::added(out,
                                    [&](double* p) {
                                      Values ignored(weights.size());
                                      ref::linear_backward_weights(n, in, out, x.data(), d.data(),
                                                                   ignored.data(), p);
                                    }),
                        loss);
}

}  // namespace
}  // namespace lantern::ops
