// Batch normalisation of the engine against the reference formulas in double and against oneDNN.

#include "ops/batch_norm/batch_norm.hpp"

#include "ops/batch_norm/batch_norm_kernels.hpp"
#include "ops/batch_norm/batch_norm_ref.hpp"
#include "ops/onednn.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::Activation;
using Doubles = std::vector<double>;

Doubles widen(const Floats& values) { return {values.begin(), values.end()}; }
Floats narrow(const Doubles& values) {
  Floats floats(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  return floats;
}

struct Case {
  Shape shape;
  Activation activation = Activation::kLinear;
  bool residual = false;
  bool fixed = false;  ///< statistics are given, not made from x
};

struct Result {
  Floats mean, variance, y, dx, d_gamma, d_beta, d_residual;
};

class NormRun {
 public:
  NormRun(const Case& c, std::uint32_t trial) : case_(c) {
    Rng rng(101, "batch norm", static_cast<std::uint64_t>(c.activation), trial);
    const std::int64_t channels = c.shape.c();
    x = random_floats(rng, c.shape.elements());
    // Channels differ in mean and spread.
    const std::int64_t spatial = c.shape.h() * c.shape.w();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i) / spatial % channels;
      x[i] = x[i] * (0.5F + 0.25F * static_cast<float>(k % 7)) + static_cast<float>(k % 5) - 2;
    }
    dy = random_floats(rng, c.shape.elements());
    residual = random_floats(rng, c.shape.elements());
    gamma = random_floats(rng, channels, 0.5F, 2);
    beta = random_floats(rng, channels, -1, 1);
    given_mean = random_floats(rng, channels, -2, 2);
    given_variance = random_floats(rng, channels, 0.1F, 3);
  }

  std::unique_ptr<OpRunner> make(const RunnerOptions& options) {
    auto runner = std::make_unique<OpRunner>(options);
    src_ = runner->source("x", case_.shape, x);
    if (case_.residual) side_ = runner->source("r", case_.shape, residual);
    const Shape channels{case_.shape.c()};
    if (case_.fixed) {
      mean_ = runner->input("mean", channels, given_mean);
      variance_ = runner->input("variance", channels, given_variance);
    } else {
      const auto made = runner->op(ops::kBatchNormStatistics,
                                   std::make_shared<const graph::OpParams>(), {src_}, "s");
      mean_ = made[0];
      variance_ = made[1];
      runner->keep(mean_);
      runner->keep(variance_);
    }
    gamma_ = runner->parameter("gamma", channels, gamma);
    beta_ = runner->parameter("beta", channels, beta);
    std::vector<TensorId> inputs{src_, mean_, variance_, gamma_, beta_};
    if (case_.residual) inputs.push_back(side_);
    dst_ = runner->op(
        ops::kBatchNormApply,
        std::make_shared<const ops::BatchNormParams>(case_.activation, case_.residual, case_.fixed),
        inputs, "y")[0];
    runner->keep(dst_);
    runner->differentiate({{dst_, dy}});
    return runner;
  }

  Result result(const OpRunner& runner) const {
    Result r{runner.value(mean_),
             runner.value(variance_),
             runner.value(dst_),
             runner.gradient(src_),
             runner.gradient(gamma_),
             runner.gradient(beta_),
             {}};
    if (case_.residual) r.d_residual = runner.gradient(side_);
    return r;
  }
  Result run(const RunnerOptions& options) {
    const auto runner = make(options);
    runner->run();
    return result(*runner);
  }

  /// What the formulas give in double.
  Result expected(const RunnerOptions& options) const {
    const std::int64_t n = case_.shape.n(), c = case_.shape.c(),
                       spatial = case_.shape.h() * case_.shape.w();
    const Doubles in = widen(x), direction = widen(dy), g = widen(gamma), b = widen(beta),
                  r = widen(residual);
    Doubles mean = widen(given_mean), variance = widen(given_variance);
    if (!case_.fixed)
      ops::ref::batch_norm_statistics(n, c, spatial, in.data(), mean.data(), variance.data());
    Doubles y(in.size()), dg(g.size()), db(g.size());
    Doubles dx = widen(initial_gradient(options, case_.shape));
    Doubles dr = dx;
    ops::ref::batch_norm_forward(n, c, spatial, in.data(), mean.data(), variance.data(), g.data(),
                                 b.data(), case_.residual ? r.data() : nullptr, case_.activation,
                                 y.data());
    ops::ref::batch_norm_backward(
        n, c, spatial, in.data(), mean.data(), variance.data(), g.data(), b.data(),
        case_.activation, case_.fixed ? ops::ref::Statistics::kFixed : ops::ref::Statistics::kBatch,
        direction.data(), dx.data(), dg.data(), db.data(), case_.residual ? dr.data() : nullptr);
    return {narrow(mean), narrow(variance), narrow(y), narrow(dx),
            narrow(dg),   narrow(db),       narrow(dr)};
  }

  Floats x, dy, residual, gamma, beta, given_mean, given_variance;

 private:
  Case case_;
  TensorId src_{}, side_{}, mean_{}, variance_{}, gamma_{}, beta_{}, dst_{};
};

void check_against_reference(const Case& c, const RunnerOptions& options, std::uint32_t trial) {
  SCOPED_TRACE(::testing::Message()
               << c.shape.to_string() << " " << ops::to_string(c.activation)
               << (c.residual ? " residual" : "") << (c.fixed ? " fixed" : "") << ", block "
               << options.block << ", threads " << options.threads
               << (options.accumulate ? ", accumulate" : ""));
  NormRun norm(c, trial);
  const Result want = norm.expected(options);
  const auto runner = norm.make(options);
  for (const int subdivision : {0, 1, 0}) {
    runner->run({.subdivision = subdivision});
    const Result got = norm.result(*runner);
    const auto times = [&](Floats values) {
      for (float& v : values) v *= static_cast<float>(subdivision + 1);
      return values;
    };
    expect_close(got.mean, want.mean, 1e-6F, "mean");
    expect_close(got.variance, want.variance, 1e-6F, "variance");
    expect_close(got.y, want.y, 1e-5F, "y");
    expect_close(got.dx, want.dx, 2e-5F, "dx");
    expect_close(got.d_gamma, times(want.d_gamma), 2e-5F, "d_gamma");
    expect_close(got.d_beta, times(want.d_beta), 2e-5F, "d_beta");
    if (c.residual) expect_close(got.d_residual, want.d_residual, 1e-6F, "d_residual");
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(BatchNorm, MatchesTheReferenceWithEveryActivation) {
  std::uint32_t trial = 0;
  for (const ops::ActivationName& entry : ops::kActivationNames) {
    if (ops::mixes_channels(entry.value)) continue;  // an op of its own
    for (const int block : {1, 8, 16}) {
      for (const bool residual : {false, true}) {
        for (const bool fixed : {false, true}) {
          const Case c{{3, 21, 4, 5}, entry.value, residual, fixed};
          check_against_reference(c, {.block = block, .threads = 2, .accumulate = trial % 2 == 0},
                                  trial);
          ++trial;
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(BatchNorm, MatchesTheReferenceOnRandomShapes) {
  for (std::uint32_t trial = 0; trial < 40; ++trial) {
    Rng rng(102, "shapes", 0, trial);
    const Case c{{rng.uniform_int(1, 9), rng.uniform_int(1, 40), rng.uniform_int(2, 9),
                  rng.uniform_int(2, 9)},
                 rng.coin() ? Activation::kMish : Activation::kLinear,
                 rng.coin(),
                 rng.uniform_int(0, 3) == 0};
    for (const int block : {1, 8, 16}) {
      check_against_reference(
          c,
          {.block = block, .threads = 1 + static_cast<int>(rng.coin()), .accumulate = rng.coin()},
          trial);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(BatchNorm, MatchesTheReferenceOnMapsOfSeveralSegments) {
  for (const int block : {1, 8, 16}) {
    check_against_reference({{2, 19, 71, 123}, Activation::kLeaky, true},
                            {.block = block, .threads = 2}, 7);
  }
}

TEST(BatchNorm, KeepsItsVarianceFarFromZero) {
  // A mean of 1000 at a spread of 0.01: the sum of squares alone would lose it in single precision.
  const Case c{{4, 3, 8, 8}};
  NormRun norm(c, 0);
  for (std::size_t i = 0; i < norm.x.size(); ++i) norm.x[i] = 1000.0F + 0.01F * norm.dy[i];
  const RunnerOptions options{.block = 16, .threads = 2};
  const Result got = norm.run(options);
  const Result want = norm.expected(options);
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(got.variance[k], want.variance[k], 1e-4 * want.variance[k]);
}

TEST(BatchNorm, TheThreadCountChangesNoBit) {
  for (const Shape& shape : {Shape{3, 21, 4, 5}, Shape{1, 5, 80, 90}, Shape{7, 64, 13, 13}}) {
    for (const bool accumulate : {false, true}) {
      NormRun norm({shape, Activation::kSwish, true}, 3);
      const Result one =
          norm.run({.block = ops::preferred_block(), .threads = 1, .accumulate = accumulate});
      const Result two =
          norm.run({.block = ops::preferred_block(), .threads = 2, .accumulate = accumulate});
      EXPECT_EQ(one.mean, two.mean);
      EXPECT_EQ(one.variance, two.variance);
      EXPECT_EQ(one.y, two.y);
      EXPECT_EQ(one.dx, two.dx);
      EXPECT_EQ(one.d_gamma, two.d_gamma);
      EXPECT_EQ(one.d_beta, two.d_beta);
    }
  }
}

// The kernels on ranges of images and on a channel slice of a wider tensor give the bits of a whole
// dense call.
TEST(BatchNorm, ChunksAndSlicesGiveTheBitsOfTheWholeBatch) {
  using ops::batch_norm::Maps;
  for (const int block : {1, 8, 16}) {
    const ops::batch_norm::Extents e{.c = 21, .spatial = 4200, .block = block};
    const std::int64_t images = 5;
    const std::int64_t dense = e.dense_stride();
    const std::int64_t wide = dense + 3 * e.spatial * block;
    Rng rng(103, "chunks");
    const auto padded = [&](float low, float high) {  // dense maps with zero padding
      Floats plain = random_floats(rng, images * e.c * e.spatial, low, high);
      Floats blocked(static_cast<std::size_t>(images * dense));
      ops::from_plain(ops::Layout{.block = block}, Shape{images, e.c, e.spatial, 1}, plain.data(),
                      blocked.data());
      return blocked;
    };
    const auto widened = [&](const Floats& maps) {
      Floats out(static_cast<std::size_t>(images * wide), 77.0F);
      for (std::int64_t i = 0; i < images; ++i)
        std::copy_n(maps.data() + i * dense, dense, out.data() + i * wide);
      return out;
    };
    const auto narrowed = [&](const Floats& maps) {
      Floats out(static_cast<std::size_t>(images * dense));
      for (std::int64_t i = 0; i < images; ++i)
        std::copy_n(maps.data() + i * wide, dense, out.data() + i * dense);
      return out;
    };
    const Floats x = padded(-2, 3), dy = padded(-1, 1), side = padded(-1, 1);
    const Floats gamma = random_floats(rng, 21, 0.5F, 2), beta = random_floats(rng, 21);
    struct Values {
      Floats mean = Floats(21), variance = Floats(21), sum = Floats(21), product = Floats(21), y,
             dx;
    };
    const auto run = [&](std::int64_t chunk, bool strided) {
      const std::int64_t stride = strided ? wide : dense;
      const Floats in = strided ? widened(x) : x, gradient = strided ? widened(dy) : dy,
                   extra = strided ? widened(side) : side;
      Values v;
      v.y = v.dx = Floats(in.size(), 55.0F);
      std::vector<double> partial(
          static_cast<std::size_t>(ops::batch_norm::partial_bytes(e, images)) / 8);
      const ops::batch_norm::Channels channels{v.mean.data(), v.variance.data(), gamma.data(),
                                               beta.data()};
      const auto chunks = [&](auto body) {
        for (std::int64_t first = 0; first < images; first += chunk)
          body(first, std::min(images, first + chunk));
      };
      const Maps<const float> xs{in.data(), stride}, dys{gradient.data(), stride},
          sides{extra.data(), stride};
      chunks([&](std::int64_t first, std::int64_t last) {
        ops::batch_norm::partial_statistics(e, xs, first, last, partial.data(), 2);
      });
      ops::batch_norm::finish_statistics(e, partial.data(), images, v.mean.data(),
                                         v.variance.data());
      chunks([&](std::int64_t first, std::int64_t last) {
        ops::batch_norm::apply(e, channels, xs, sides, {v.y.data(), stride}, Activation::kMish,
                               first, last, 2);
      });
      chunks([&](std::int64_t first, std::int64_t last) {
        ops::batch_norm::partial_reduce(e, channels, dys, xs, Activation::kMish, first, last,
                                        partial.data(), 2);
      });
      ops::batch_norm::finish_reduce(e, partial.data(), images, v.sum.data(), v.product.data());
      chunks([&](std::int64_t first, std::int64_t last) {
        ops::batch_norm::backward_apply(e, channels, v.sum.data(), v.product.data(),
                                        images * e.spatial, dys, xs, {v.dx.data(), stride},
                                        Activation::kMish, false, first, last, 2);
      });
      if (strided) {
        for (const Floats* maps : {&v.y, &v.dx}) {  // nothing beside the slice was touched
          for (std::int64_t i = 0; i < images; ++i) {
            for (std::int64_t k = dense; k < wide; ++k) {
              EXPECT_EQ((*maps)[static_cast<std::size_t>(i * wide + k)], 55.0F);
            }
          }
        }
        v.y = narrowed(v.y);
        v.dx = narrowed(v.dx);
      }
      return v;
    };
    const Values whole = run(images, false);
    for (const std::int64_t chunk : {1, 2, 5}) {
      const Values cut = run(chunk, chunk != 2);
      EXPECT_EQ(cut.mean, whole.mean);
      EXPECT_EQ(cut.variance, whole.variance);
      EXPECT_EQ(cut.y, whole.y);
      EXPECT_EQ(cut.sum, whole.sum);
      EXPECT_EQ(cut.product, whole.product);
      EXPECT_EQ(cut.dx, whole.dx);
    }
  }
}

// A second opinion: the library's own training-mode batch normalisation.
TEST(BatchNorm, AgreesWithOneDnn) {
  using Tag = dnnl::memory::format_tag;
  constexpr auto kF32 = dnnl::memory::data_type::f32;
  const Shape shape{5, 19, 13, 11};
  NormRun norm({shape}, 11);
  const Result ours = norm.run({.block = ops::preferred_block(), .threads = 2});
  const dnnl::engine& engine = ops::onednn::engine();
  dnnl::stream stream(engine);
  const dnnl::memory::desc data({5, 19, 13, 11}, kF32, Tag::nchw);
  const auto flags = dnnl::normalization_flags::use_scale_shift;
  const dnnl::batch_normalization_forward::primitive_desc forward_pd(
      {dnnl::prop_kind::forward_training, data, ops::kBatchNormEpsilon, flags}, engine);
  const dnnl::batch_normalization_backward::primitive_desc backward_pd(
      {dnnl::prop_kind::backward, data, data, ops::kBatchNormEpsilon, flags}, engine, forward_pd);
  Floats scale_shift = norm.gamma;
  scale_shift.insert(scale_shift.end(), norm.beta.begin(), norm.beta.end());
  Floats mean(19), variance(19), y(norm.x.size()), dx(norm.x.size()), d_scale_shift(38);
  const auto memory = [&](const dnnl::memory::desc& desc, Floats& values) {
    return dnnl::memory(desc, engine, values.data());
  };
  const dnnl::memory x_memory = memory(data, norm.x),
                     weights = memory(forward_pd.weights_desc(), scale_shift),
                     mean_memory = memory(forward_pd.mean_desc(), mean),
                     variance_memory = memory(forward_pd.variance_desc(), variance);
  dnnl::batch_normalization_forward(forward_pd)
      .execute(stream, {{DNNL_ARG_SRC, x_memory},
                        {DNNL_ARG_SCALE_SHIFT, weights},
                        {DNNL_ARG_MEAN, mean_memory},
                        {DNNL_ARG_VARIANCE, variance_memory},
                        {DNNL_ARG_DST, memory(data, y)}});
  dnnl::batch_normalization_backward(backward_pd)
      .execute(stream, {{DNNL_ARG_SRC, x_memory},
                        {DNNL_ARG_SCALE_SHIFT, weights},
                        {DNNL_ARG_MEAN, mean_memory},
                        {DNNL_ARG_VARIANCE, variance_memory},
                        {DNNL_ARG_DIFF_DST, memory(data, norm.dy)},
                        {DNNL_ARG_DIFF_SRC, memory(data, dx)},
                        {DNNL_ARG_DIFF_SCALE_SHIFT,
                         memory(backward_pd.diff_weights_desc(), d_scale_shift)}});
  stream.wait();
  expect_close(ours.mean, mean, 1e-4F, "mean");
  expect_close(ours.variance, variance, 1e-4F, "variance");
  expect_close(ours.y, y, 1e-4F, "y");
  expect_close(ours.dx, dx, 1e-4F, "dx");
  expect_close(ours.d_gamma, Floats(d_scale_shift.begin(), d_scale_shift.begin() + 19), 1e-4F,
               "d_gamma");
  expect_close(ours.d_beta, Floats(d_scale_shift.begin() + 19, d_scale_shift.end()), 1e-4F,
               "d_beta");
}

TEST(BatchNorm, RollingStatisticsMatchTheReference) {
  for (const std::int64_t count : {1, 2, 300}) {
    graph::Graph graph;
    const Shape channels{19};
    std::vector<TensorId> ids;
    for (const char* name : {"mean", "variance", "rolling_mean", "rolling_variance"}) {
      ids.push_back(graph.add_tensor(name, {channels}, graph::Role::kState));
    }
    graph.add_op_to(ops::kBatchNormRolling,
                    std::make_shared<const ops::BatchNormRollingParams>(count), {ids[0], ids[1]},
                    {ids[2], ids[3]}, {true, true}, graph::ProgramKind::kUpdate, 0);
    ops::Selection selection = ops::select(graph, {});
    plan::Program program = plan::make_program(selection.selected);
    plan::check(selection.selected, program);
    exec::Executor executor(std::move(selection), std::move(program), 1);
    Rng rng(104, "rolling");
    Doubles rolling_mean(19), rolling_variance(19, 1.0);
    executor.write(ids[3], narrow(rolling_variance));
    for (int step = 0; step < 5; ++step) {
      const Floats mean = random_floats(rng, 19);
      const Floats variance = random_floats(rng, 19, 0, 2);
      executor.write(ids[0], mean);
      executor.write(ids[1], variance);
      executor.run(graph::ProgramKind::kUpdate, {});
      const Doubles m = widen(mean), v = widen(variance);
      ops::ref::batch_norm_update_rolling(19, count, m.data(), v.data(), rolling_mean.data(),
                                          rolling_variance.data());
      expect_close(executor.read(ids[2]), narrow(rolling_mean), 1e-6F, "rolling mean");
      expect_close(executor.read(ids[3]), narrow(rolling_variance), 1e-6F, "rolling variance");
    }
  }
}

}  // namespace
}  // namespace lantern::test
