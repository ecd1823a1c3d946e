// Backward of whole networks: random graphs of shared, split and joined maps against variants of
// themselves and against differences.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "exec/model.hpp"
#include "graph/random_network.hpp"

namespace lantern::test {
namespace {

constexpr std::int64_t kImages = 2;

struct Variant {
  bool keep = false;
  bool fuse = true;
  int threads = 2;
};

std::vector<float> random_values(Rng rng, std::int64_t count, float low, float high) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = rng.uniform(low, high);
  return values;
}

/// A model of a cfg text with addressed random weights, images and truth.
class Subject {
 public:
  Subject(const std::string& cfg, Variant variant, std::uint64_t seed) : seed_(seed) {
    Diagnostics diagnostics;
    layers::Network network = layers::load_network("random.cfg", cfg, diagnostics);
    diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
    model_ = std::make_unique<exec::Model>(
        std::move(network), exec::ModelOptions{.training = true,
                                               .mini_batch = kImages,
                                               .forward_batch = 0,
                                               .threads = variant.threads,
                                               .plan = {.keep_everything = variant.keep},
                                               .fuse_layers = variant.fuse,
                                               .input_gradient = true});
    model_->initialise(seed);
    for (std::size_t i = 0; i < model_->lowered().parameters.size(); ++i) {
      const layers::ParameterBinding& binding = model_->lowered().parameters[i];
      if (binding.array == "weights" || binding.array.starts_with("rolling")) continue;
      const bool scales = binding.array == "scales";
      model_->set_parameter(
          i, random_values(Rng(seed, binding.array, 0, static_cast<std::uint32_t>(i)),
                           size_of(binding.tensor), scales ? 0.5F : -0.3F, scales ? 1.5F : 0.3F));
    }
    const layers::Dims input = model_->network().input();
    images_ = random_values(Rng(seed, "images"), kImages * input.elements(), 0, 1);
    Rng rng(seed, "truth");
    truth_.assign(static_cast<std::size_t>(kImages * model_->lowered().truth_floats), 0.0F);
    for (std::int64_t image = 0; image < kImages; ++image) {
      for (std::int64_t k = 0; k < 3; ++k) {
        float* row = truth_.data() + image * model_->lowered().truth_floats + k * 6;
        row[0] = rng.uniform(0.1F, 0.9F);
        row[1] = rng.uniform(0.1F, 0.9F);
        row[2] = rng.uniform(0.1F, 0.6F);
        row[3] = rng.uniform(0.1F, 0.6F);
        row[4] = static_cast<float>(rng.uniform_int(0, 1));
      }
    }
  }

  exec::Model& model() { return *model_; }
  const layers::Lowered& lowered() const { return model_->lowered(); }
  std::vector<float>& images() { return images_; }
  std::int64_t size_of(graph::TensorId tensor) const {
    return lowered().graph.type(tensor).shape.elements();
  }

  ops::RunContext context(std::int64_t iteration = 1) const {
    return {.iteration = iteration,
            .learning_rate = 0.01F,
            .momentum = 0.9F,
            .decay = 0.0005F,
            .batch = kImages};
  }
  void run() {
    model_->executor().poison_transients();
    model_->run_mini_batch(images_, truth_, context());
  }
  void update() {
    model_->executor().poison_transients();
    model_->update(context());
  }
  std::vector<float> read(graph::TensorId tensor) const { return model_->executor().read(tensor); }

  /// Gradients of the input and of every parameter, by name.
  std::map<std::string, std::vector<float>> gradients() const {
    std::map<std::string, std::vector<float>> all;
    for (const layers::ParameterBinding& binding : lowered().parameters) {
      if (binding.gradient)
        all[lowered().graph.tensor(binding.tensor).name] = read(*binding.gradient);
    }
    return all;
  }
  std::map<std::string, std::vector<float>> parameters() const {
    std::map<std::string, std::vector<float>> all;
    for (const layers::ParameterBinding& binding : lowered().parameters) {
      all[lowered().graph.tensor(binding.tensor).name] = read(binding.tensor);
    }
    return all;
  }

 private:
  std::uint64_t seed_;
  std::unique_ptr<exec::Model> model_;
  std::vector<float> images_, truth_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& reference) {
  double worst = 0, squares = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - reference[i]);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
    squares += static_cast<double>(reference[i]) * reference[i];
  }
  return worst / std::max(std::sqrt(squares / static_cast<double>(reference.size())), 1e-3);
}

class RandomGraph : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  std::string cfg(const RandomNetworkOptions& options = {}) const {
    Rng rng(11, "graph", 0, GetParam());
    return random_network(rng, options);
  }
};

TEST_P(RandomGraph, SharingBytesChangesNoBit) {
  const std::string text = cfg();
  SCOPED_TRACE(text);
  const int threads = 1 + static_cast<int>(GetParam() % 2);
  for (const bool fuse : {false, true}) {
    Subject kept(text, {.keep = true, .fuse = fuse, .threads = threads}, GetParam());
    Subject shared(text, {.keep = false, .fuse = fuse, .threads = threads}, GetParam());
    for (int iteration = 0; iteration < 2; ++iteration) {
      kept.run();
      shared.run();
      const auto reference = kept.gradients();
      for (const auto& [name, values] : shared.gradients())
        EXPECT_TRUE(same_bits(values, reference.at(name))) << name;
      kept.update();
      shared.update();
    }
    const auto reference = kept.parameters();
    for (const auto& [name, values] : shared.parameters())
      EXPECT_TRUE(same_bits(values, reference.at(name))) << name;
    EXPECT_LE(shared.model().executor().arena_bytes(), kept.model().executor().arena_bytes());
  }
}

// Another order of the same sums; batch normalisation of few values makes it grow.
constexpr double kRounding = 1e-4;

TEST_P(RandomGraph, FoldedShortcutsGiveTheSameGradients) {
  const std::string text = cfg();
  SCOPED_TRACE(text);
  Subject plain(text, {.keep = true, .fuse = false}, GetParam());
  Subject folded(text, {.keep = true, .fuse = true}, GetParam());
  plain.run();
  folded.run();
  EXPECT_LE(relative_error(folded.read(*folded.lowered().input_gradient),
                           plain.read(*plain.lowered().input_gradient)),
            kRounding);
  const auto reference = plain.gradients();
  const auto actual = folded.gradients();
  ASSERT_EQ(actual.size(), reference.size());
  for (const auto& [name, values] : actual)
    EXPECT_LE(relative_error(values, reference.at(name)), kRounding) << name;
}

/// d(sum of delta * raw) along a direction, where delta is held: what backward propagates.
class Directional {
 public:
  explicit Directional(Subject& subject) : subject_(subject) {
    subject.run();
    for (const layers::LossBinding& loss : subject.lowered().losses)
      deltas_.push_back(subject.read(loss.delta));
  }
  double value() {
    subject_.run();
    double sum = 0;
    for (std::size_t i = 0; i < deltas_.size(); ++i) {
      const int layer = subject_.lowered().losses[i].layer;
      const auto raw =
          subject_.read(*subject_.lowered().outputs[static_cast<std::size_t>(layer) - 1]);
      for (std::size_t k = 0; k < raw.size(); ++k)
        sum += static_cast<double>(deltas_[i][k]) * raw[k];
    }
    return sum;
  }
  /// Central difference; `move(t)` puts the subject at base + t * direction. Checked at two steps,
  /// the better counts.
  template <typename Move>
  double error(double expected, double scale, Move move) {
    double best = INFINITY;
    for (const double step : {4e-3, 1e-3, 2.5e-4}) {
      move(step);
      const double above = value();
      move(-step);
      const double below = value();
      best = std::min(best, std::abs((above - below) / (2 * step) - expected) / scale);
    }
    move(0);
    return best;
  }

 private:
  Subject& subject_;
  std::vector<std::vector<float>> deltas_;
};

std::vector<float> moved(const std::vector<float>& base, const std::vector<float>& direction,
                         double t) {
  std::vector<float> values(base);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(t) * direction[i];
  return values;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}
double norm(const std::vector<float>& a) { return std::sqrt(dot(a, a)); }

// Gradients of the input and of every parameter along a direction, against central differences.
void expect_derivatives(const std::string& text, bool fuse, std::uint32_t seed) {
  SCOPED_TRACE(text);
  // The networks are tiny: a second thread only costs.
  Subject subject(text, {.keep = true, .fuse = fuse, .threads = 1}, seed);
  Directional directional(subject);
  const std::vector<float> input_gradient = subject.read(*subject.lowered().input_gradient);
  const std::vector<layers::ParameterBinding> bindings = subject.lowered().parameters;
  std::vector<std::vector<float>> gradients;
  for (const layers::ParameterBinding& binding : bindings) {
    gradients.push_back(binding.gradient ? subject.read(*binding.gradient) : std::vector<float>());
  }
  // Along the gradient itself plus noise: the slope is large, so that rounding is small beside
  // it.
  const auto direction_of = [&](const std::vector<float>& gradient, std::uint32_t index) {
    std::vector<float> direction = random_values(Rng(seed, "direction", 0, index),
                                                 static_cast<std::int64_t>(gradient.size()), -1, 1);
    const double mix = norm(direction) / std::max(norm(gradient), 1e-12);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      direction[i] += static_cast<float>(mix) * gradient[i];
    }
    const double length = norm(direction);
    for (float& value : direction) value = static_cast<float>(value / length);
    return direction;
  };
  const auto images = subject.images();
  const auto along_input = direction_of(input_gradient, 1000);
  EXPECT_LE(directional.error(dot(input_gradient, along_input), norm(input_gradient) + 1e-3,
                              [&](double t) { subject.images() = moved(images, along_input, t); }),
            1e-2)
      << "input, fuse " << fuse;
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    if (gradients[i].empty()) continue;
    const std::vector<float> base = subject.read(bindings[i].tensor);
    const auto along = direction_of(gradients[i], static_cast<std::uint32_t>(i));
    EXPECT_LE(directional.error(
                  dot(gradients[i], along), norm(gradients[i]) + 1e-2,
                  [&](double t) { subject.model().set_parameter(i, moved(base, along, t)); }),
              1e-2)
        << subject.lowered().graph.tensor(bindings[i].tensor).name << ", fuse " << fuse;
  }
}

class SmoothGraph : public RandomGraph {};

TEST_P(SmoothGraph, GradientsAreTheDerivativesOfForward) {
  expect_derivatives(cfg({.layers = 5, .smooth = true}), GetParam() % 2 == 1, GetParam());
}

// ---- maps whose gradients could share a buffer too long
// ------------------------------------------

std::string detector(const std::string& layers) {
  return "[net]\nwidth=8\nheight=8\nchannels=3\nbatch=2\nsubdivisions=1\nmax_batches=10\n" +
         layers +
         "[convolutional]\nfilters=14\nsize=1\nactivation=linear\n"
         "[yolo]\nmask=0,1\nanchors=3,4, 7,6\nclasses=2\nnum=2\nmax=5\n";
}
std::string convolution(bool normalize, const std::string& activation) {
  return fmt::format(
      "[convolutional]\nbatch_normalize={}\nfilters=8\nsize=3\npad=1\nactivation={}\n",
      normalize ? 1 : 0, activation);
}
std::string shortcut(const std::string& from) {
  return "[shortcut]\nfrom=" + from + "\nactivation=linear\n";
}
std::string route(int layer) { return fmt::format("[route]\nlayers={}\n", layer); }

void expect_derivatives_both_ways(const std::string& layers) {
  for (const bool fuse : {false, true}) expect_derivatives(detector(layers), fuse, 3);
}

TEST(SharedGradient, OfAPoolAndTheMapItPools) {
  expect_derivatives_both_ways(convolution(true, "swish") + "[maxpool]\nsize=3\nstride=1\n" +
                               shortcut("-2"));
}

TEST(SharedGradient, OfAConvolutionAndItsSource) {
  expect_derivatives_both_ways(convolution(true, "swish") + convolution(false, "linear") +
                               shortcut("-2"));
}

TEST(SharedGradient, OfAMapThatIsAddedTwice) {
  expect_derivatives_both_ways(convolution(true, "swish") + convolution(true, "tanh") +
                               shortcut("-2") + shortcut("-3"));
  expect_derivatives_both_ways(convolution(true, "swish") + convolution(true, "tanh") +
                               shortcut("-2,-2"));
  expect_derivatives_both_ways(convolution(true, "swish") + convolution(true, "tanh") + route(0) +
                               shortcut("0"));
}

TEST(SharedGradient, OfAMapMadeLongBeforeTheSum) {
  // Layer 1 waits for its gradient while layer 0 collects its own from layer 3.
  expect_derivatives_both_ways(convolution(true, "swish") + convolution(true, "tanh") + route(0) +
                               convolution(true, "mish") + shortcut("0") + route(1) +
                               shortcut("4"));
  expect_derivatives_both_ways(convolution(true, "swish") + convolution(true, "tanh") + route(0) +
                               convolution(false, "mish") + shortcut("0") + route(1) +
                               shortcut("4"));
}

TEST(SharedGradient, OfResidualChains) {
  std::string layers = convolution(true, "swish");
  for (int block = 0; block < 3; ++block)
    layers += convolution(true, "mish") + convolution(true, "swish") + shortcut("-3");
  expect_derivatives_both_ways(layers + shortcut("-4") + shortcut("0"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraph, ::testing::Range(0U, 24U));
INSTANTIATE_TEST_SUITE_P(Seeds, SmoothGraph, ::testing::Range(0U, 10U));

}  // namespace
}  // namespace lantern::test
