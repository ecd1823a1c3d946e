// Recurrent sections through the whole engine against plain loops in double precision: outputs,
// gradients (central differences of the loops), rolling statistics, and what is kept from one run
// to the next.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "exec/model.hpp"
#include "layers/recurrent_reference.hpp"
#include "ops/finite_difference.hpp"

namespace lantern::test {
namespace {

using Floats = std::vector<float>;

constexpr int kSteps = 3;
constexpr std::int64_t kSequences = 4;
constexpr std::int64_t kImages = kSteps * kSequences;

struct Section {
  const char* name;
  const char* text;
};

// Every section with every key of it, 3 x 3 x 4 in.
constexpr Section kSections[] = {
    {"rnn", "[rnn]\nhidden=5\noutput=3\nactivation=leaky\n"},
    {"rnn_logistic", "[rnn]\nhidden=5\noutput=3\nactivation=tanh\nlogistic=1\nshortcut=1\n"},
    {"rnn_loggy_normalised", "[rnn]\nhidden=4\noutput=3\nlogistic=2\nbatch_normalize=1\n"},
    {"crnn", "[crnn]\nhidden=6\noutput=5\nsize=3\npad=1\nactivation=mish\n"},
    {"crnn_groups_normalised",
     "[crnn]\nhidden=6\noutput=4\nsize=3\npad=1\ngroups=2\nshortcut=1\nbatch_normalize=1\n"
     "activation=leaky\n"},
    {"crnn_single_pixel", "[crnn]\nhidden=3\noutput=3\nsize=1\nactivation=tanh\n"},
    {"gru", "[gru]\noutput=5\n"},
    {"gru_normalised", "[gru]\noutput=5\nbatch_normalize=1\n"},
    {"lstm", "[lstm]\noutput=5\n"},
    {"lstm_normalised", "[lstm]\noutput=5\nbatch_normalize=1\n"},
    {"conv_lstm", "[conv_lstm]\noutput=5\nsize=3\npad=1\n"},
    {"conv_lstm_peephole",
     "[conv_lstm]\noutput=4\nsize=3\npad=1\npeephole=1\nbatch_normalize=1\nactivation=leaky\n"},
    {"conv_lstm_leaky",
     "[conv_lstm]\noutput=4\nsize=1\ngroups=2\nlstm_activation=leaky\nstate_constrain=0\n"},
    {"conv_lstm_bottleneck",
     "[conv_lstm]\noutput=4\nsize=3\npad=1\nbottleneck=1\nshortcut=1\npeephole=1\n"},
    {"conv_lstm_time_normalizer",
     "[conv_lstm]\noutput=4\nsize=3\npad=1\nbottleneck=1\ntime_normalizer=0.5\n"},
    {"history", "[history]\nhistory_size=3\n"},
};

layers::Network load(const std::string& section, const std::string& net = "",
                     int time_steps = kSteps) {
  Diagnostics diagnostics;
  layers::Network network = layers::load_network(
      "net.cfg",
      fmt::format("[net]\nwidth=3\nheight=3\nchannels=4\nbatch={}\ntime_steps={}\n"
                  "learning_rate=0.1\nmax_batches=10\n{}\n{}[cost]\n",
                  kSequences, time_steps, net, section),
      diagnostics);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  return network;
}

Floats floats(const Values& values) {
  Floats out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
  return out;
}

// Values that a float holds exactly, so that both sides start from the same numbers.
Values random_exact(Rng rng, std::int64_t count, float low, float high) {
  Values values(static_cast<std::size_t>(count));
  for (double& v : values) v = static_cast<double>(rng.uniform(low, high));
  return values;
}

/// A model of one section, its arrays with random values, and the same in the reference.
class Subject {
 public:
  explicit Subject(layers::Network network, bool training = true, std::int64_t batch = 1)
      : model_(std::move(network), {.training = training,
                                    .mini_batch = kImages,
                                    .forward_batch = training ? 0 : batch,
                                    .threads = 2,
                                    .plan = {.keep_everything = true},
                                    .input_gradient = true}) {
    for (std::size_t i = 0; i < model_.lowered().parameters.size(); ++i) {
      const layers::ParameterBinding& binding = model_.lowered().parameters[i];
      const std::int64_t count = model_.lowered().graph.type(binding.tensor).shape.elements();
      const bool positive =
          binding.array.ends_with("scales") || binding.array.ends_with("rolling_variance");
      const Values values = random_exact(Rng(1, binding.array), count, positive ? 0.5F : -0.5F,
                                         positive ? 1.5F : 0.5F);
      arrays[binding.array] = values;
      model_.set_parameter(i, floats(values));
    }
    input = random_exact(Rng(2, "input"), kImages * layer().in.elements(), -1, 1);
  }

  exec::Model& model() { return model_; }
  const layers::Layer& layer() const { return model_.network().layers[0]; }
  RecurrentReference reference(std::int64_t images = kSequences) const {
    return {layer(), images, model_.network().net.time_steps};
  }
  Floats output() const { return model_.executor().read(*model_.lowered().outputs[0]); }
  void run(const Values& truth, const ops::RunContext& context = {}) {
    model_.executor().poison_transients();
    model_.run_mini_batch(floats(input), floats(truth), context);
  }
  Values no_truth() const {
    return Values(static_cast<std::size_t>(kImages * layer().out.elements()), 0.0);
  }

  Arrays arrays;
  Values input;

 private:
  exec::Model model_;
};

void expect_close(const Floats& got, const Values& want, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double squares = 0;
  for (const double v : want) squares += v * v;
  const double rms = std::sqrt(squares / std::max<double>(1, static_cast<double>(want.size())));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance * std::max(rms, 1e-3))
        << what << " element " << i;
  }
}

class Recurrent : public ::testing::TestWithParam<Section> {};

TEST_P(Recurrent, OutputsAndGradientsAreThoseOfPlainLoops) {
  Subject subject(load(GetParam().text));
  Arrays moved = subject.arrays;
  RecurrentReference reference = subject.reference();
  const Values y = reference.run(subject.input, moved, true);
  // Near the output: a connected sub-layer clamps gradients at 1, which differences do not know.
  const Values noise =
      random_exact(Rng(3, "truth"), static_cast<std::int64_t>(y.size()), -0.2F, 0.2F);
  Values truth(y);
  for (std::size_t i = 0; i < truth.size(); ++i)
    truth[i] = static_cast<double>(static_cast<float>(y[i] + noise[i]));
  subject.run(truth);
  expect_close(subject.output(), y, 1e-5, "output");

  RecurrentReference held = subject.reference();
  const auto loss = [&](bool record) {
    record ? held.start_recording() : held.hold_recorded();
    held.states.clear();
    Arrays arrays = subject.arrays;
    const Values out = held.run(subject.input, arrays, true);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += (truth[i] - out[i]) * (truth[i] - out[i]);
    return -0.5 * sum;  // gradients of the engine are negative ones
  };
  loss(true);
  const auto expect_gradient = [&](const std::string& what, Values& x, const Floats& gradient) {
    ASSERT_EQ(x.size(), gradient.size());
    double squares = 0;
    for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    const double rms = std::sqrt(squares / static_cast<double>(gradient.size()));
    const auto slope = [&] { return loss(false); };
    const std::size_t stride = std::max<std::size_t>(1, x.size() / 16);
    for (std::size_t i = 0; i < x.size(); i += stride) {
      const double want = central_difference(x, i, slope, 1e-4);
      EXPECT_NEAR(static_cast<double>(gradient[i]), want, 2e-4 * std::max(rms, 1e-4))
          << what << " element " << i;
    }
  };
  for (const layers::ParameterBinding& binding : subject.model().lowered().parameters) {
    if (!binding.gradient) continue;
    expect_gradient(binding.array, subject.arrays.at(binding.array),
                    subject.model().executor().read(*binding.gradient));
  }
  expect_gradient("input", subject.input,
                  subject.model().executor().read(*subject.model().lowered().input_gradient));
}

TEST_P(Recurrent, RollingStatisticsMoveAtEveryTimeStep) {
  Subject subject(load(GetParam().text));
  Arrays moved = subject.arrays;
  subject.reference().run(subject.input, moved, true);
  subject.run(subject.no_truth());
  subject.model().update({.batch = kImages});
  for (std::size_t i = 0; i < subject.model().lowered().parameters.size(); ++i) {
    const layers::ParameterBinding& binding = subject.model().lowered().parameters[i];
    if (!binding.next) continue;
    expect_close(subject.model().executor().read(binding.tensor), moved.at(binding.array), 1e-5,
                 binding.array);
  }
}

TEST_P(Recurrent, InferenceGoesOnFromPictureToPicture) {
  const layers::Network network = load(GetParam().text, "", 1);
  Subject one(network, false, 1);
  Subject three(network, false, 3);
  Arrays arrays = one.arrays;
  RecurrentReference reference = one.reference(1);
  const auto floats_of = [&](std::size_t first, std::size_t count) {
    const auto picture = static_cast<std::size_t>(one.layer().in.elements());
    const auto begin = one.input.begin() + static_cast<std::ptrdiff_t>(first * picture);
    return Values(begin, begin + static_cast<std::ptrdiff_t>(count * picture));
  };
  const graph::TensorId of_one = *one.model().lowered().forward_outputs[0];
  const graph::TensorId of_three = *three.model().lowered().forward_outputs[0];
  Floats first;
  for (std::size_t run = 0; run < 2; ++run) {
    const Values want = reference.run(floats_of(3 * run, 3), arrays, false);
    three.model().forward(floats(floats_of(3 * run, 3)));
    const Floats got = three.model().executor().read(of_three);
    expect_close(got, want, 1e-5, "a run of three");
    Floats singly;
    for (std::size_t picture = 0; picture < 3; ++picture) {
      one.model().forward(floats(floats_of(3 * run + picture, 1)));
      const Floats y = one.model().executor().read(of_one);
      singly.insert(singly.end(), y.begin(), y.end());
    }
    expect_close(singly, want, 1e-5, "runs of one");
    if (run == 0) first = got;
  }
  three.model().forget_states();
  three.model().forward(floats(floats_of(0, 3)));
  EXPECT_EQ(three.model().executor().read(of_three), first);
}

INSTANTIATE_TEST_SUITE_P(Sections, Recurrent, ::testing::ValuesIn(kSections),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(RecurrentStates, OfInferenceBeginAtZeroInAnArenaThatOthersHaveUsed) {
  const layers::Network network = load("[crnn]\nhidden=5\noutput=5\npad=1\n", "", 1);
  const auto arena = std::make_shared<device::Arena>(Bytes{1 << 20});
  const auto first_picture = [&](const exec::ModelOptions& options) {
    exec::Model model(network, options);
    model.initialise(1);
    model.forward(Floats(static_cast<std::size_t>(network.input().elements()), 0.5F));
    return model.executor().read(*model.lowered().forward_outputs[0]);
  };
  exec::ModelOptions options{.plan = {.keep_everything = true}};
  const Floats fresh = first_picture(options);
  options.executor = [&](const plan::Program& program) {
    EXPECT_LE(program.arena_bytes, arena->bytes());
    return exec::ExecutorOptions{.arena = arena};
  };
  std::memset(arena->at(0), 0x3f, static_cast<std::size_t>(arena->bytes()));
  EXPECT_EQ(first_picture(options), fresh);
}

// What training keeps between mini-batches.
struct Keeping {
  const char* section;
  bool keeps;  // without track=1
};

TEST(RecurrentStates, GoOnInTrainingWhereTheReferenceKeepsThem) {
  for (const Keeping& tested : {Keeping{"[gru]\noutput=5\n", true},
                                {"[lstm]\noutput=5\n", true},
                                {"[rnn]\nhidden=5\noutput=5\n", false},
                                {"[crnn]\nhidden=5\noutput=5\npad=1\n", false},
                                {"[conv_lstm]\noutput=5\npad=1\n", false},
                                {"[history]\nhistory_size=3\n", false}}) {
    SCOPED_TRACE(tested.section);
    Subject subject(load(tested.section));
    RecurrentReference reference = subject.reference();
    for (int run = 0; run < 2; ++run) {
      subject.run(subject.no_truth(), {.iteration = run + 1});
      expect_close(subject.output(), reference.run(subject.input, subject.arrays, true), 1e-5,
                   "output");
      if (!tested.keeps) reference.states.clear();
    }
  }
}

TEST(RecurrentStates, OfADroppedIterationAreForgotten) {
  for (const char* section : {"[gru]\noutput=5\n", "[lstm]\noutput=5\n"}) {
    SCOPED_TRACE(section);
    Subject subject(load(section));
    subject.run(subject.no_truth());
    const Floats begun = subject.output();
    subject.model().abandon_iteration();
    subject.run(subject.no_truth());
    EXPECT_EQ(subject.output(), begun);
    subject.model().update({.learning_rate = 0, .batch = kImages});
    subject.run(subject.no_truth());
    const Floats second = subject.output();
    EXPECT_NE(second, begun);
    subject.model().abandon_iteration();
    subject.run(subject.no_truth());
    EXPECT_EQ(subject.output(), second);
    subject.model().forget_states();
    subject.run(subject.no_truth());
    EXPECT_EQ(subject.output(), begun);
  }
}

// track=1 with four subdivisions in two sequences: mini-batches 1 and 3 go on.
TEST(RecurrentStates, GoOnWhereASequenceSpansMiniBatches) {
  for (const char* section : {"[conv_lstm]\noutput=5\npad=1\n", "[history]\nhistory_size=3\n"}) {
    SCOPED_TRACE(section);
    layers::Network network = load(section, "track=1\n");
    network.net.subdivisions = 4;
    network.net.sequential_subdivisions = 2;
    Subject subject(network);
    RecurrentReference reference = subject.reference();
    for (const int subdivision : {0, 1, 2, 3, 0}) {
      if (subdivision % 2 == 0) reference.states.clear();
      subject.run(subject.no_truth(), {.iteration = 1, .subdivision = subdivision});
      expect_close(subject.output(), reference.run(subject.input, subject.arrays, true), 1e-5,
                   "output of mini-batch " + std::to_string(subdivision));
    }
  }
}

// As [connected] does; a convolution does not.
TEST(RecurrentSubLayers, ClampTheirGradientsWhereTheyAreConnected) {
  for (const auto& [section, want] :
       {std::pair{"[rnn]\noutput=4\nactivation=linear\n", 1.0F},
        {"[crnn]\noutput=4\nsize=1\nactivation=linear\n", 9 * 5.0F}}) {
    const layers::Network network = load(section);
    exec::Model model(network, {.training = true, .mini_batch = kImages, .forward_batch = 0});
    const auto values = [&](const layers::Dims& dims, float value) {
      return Floats(static_cast<std::size_t>(kImages * dims.elements()), value);
    };
    // All weights are 0, so the gradient of every output value is its truth.
    model.run_mini_batch(values(network.input(), 1), values(network.layers[0].out, 5), {});
    for (const layers::ParameterBinding& binding : model.lowered().parameters) {
      if (binding.array != "output.biases") continue;
      EXPECT_EQ(model.executor().read(*binding.gradient), Floats(4, want * kImages)) << section;
    }
  }
}

// The clamp works on what the next step sees, after the output is made; beyond it no gradient.
TEST(ConvLstm, ConstrainsItsCell) {
  layers::Network network =
      load("[conv_lstm]\noutput=4\nsize=1\nlstm_activation=linear\nstate_constrain=1\n");
  Subject subject(network);
  for (double& v : subject.input) v *= 8;
  Arrays arrays = subject.arrays;
  RecurrentReference reference = subject.reference();
  const Values y = reference.run(subject.input, arrays, true);
  subject.run(y);
  expect_close(subject.output(), y, 1e-5, "output");
  std::get<layers::ConvLstmSpec>(network.layers[0].spec).state_constrain = 0;
  const Values without =
      RecurrentReference(network.layers[0], kSequences, kSteps).run(subject.input, arrays, true);
  EXPECT_NE(without, y);
}

std::string refusal(const std::string& section, const std::string& net = "",
                    std::int64_t mini_batch = kImages) {
  try {
    layers::lower(load(section, net),
                  {.training = true, .mini_batch = mini_batch, .forward_batch = 0});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

TEST(RecurrentRefusals, NameTheKeyAndTheReason) {
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refusal("[crnn]\npad=1\nxnor=1\n"), "[crnn] xnor");
  expect(refusal("[conv_lstm]\npad=1\nxnor=1\n"), "[conv_lstm] xnor");
  expect(refusal("[conv_lstm]\npad=1\nshortcut=1\n"), "shortcut=1 needs bottleneck=1");
  expect(refusal("[conv_lstm]\npad=1\ntime_normalizer=0.5\n"), "time_normalizer needs");
  expect(refusal("[gru]\noutput=2\n", "dynamic_minibatch=1\n"), "dynamic_minibatch=1");
  expect(refusal("[gru]\noutput=2\n", "", 4), "time_steps=3 does not divide");
  EXPECT_EQ(refusal("[conv_lstm]\npad=1\n"), "");
}

}  // namespace
}  // namespace lantern::test
