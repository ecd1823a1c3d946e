// Every network of the golden folder, run by the engine and compared with the reference's numbers.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "core/error.hpp"
#include "exec/model.hpp"
#include "golden_case.hpp"
#include "io/model_weights.hpp"
#include "io/weights.hpp"
#include "network_heads.hpp"
#include "train/schedule.hpp"

namespace lantern::test {
namespace {

// What the engine refuses today, by the name of the case. Whoever adds an op takes its names out; a
// case that starts or stops to be supported without this list fails.
const std::set<std::string> kNotRunAtAll = {};
const std::set<std::string> kNotTrained = {};

/// Largest error of every kind of tensor, as a multiple of its tolerance.
class Report {
 public:
  void add(const std::string& kind, const std::string& what, double error, double tolerance) {
    double& worst = worst_[kind];
    if (error / tolerance >= worst || std::isnan(error)) worst = error / tolerance;
    ++compared_[kind];
    EXPECT_LE(error, tolerance) << kind << ": " << what;
  }
  int compared(const std::string& kind) const {
    const auto found = compared_.find(kind);
    return found == compared_.end() ? 0 : found->second;
  }
  std::string line() const {
    std::string text;
    for (const auto& [kind, worst] : worst_)
      text += fmt::format(" {} {:.2f}/{}", kind, worst, compared_.at(kind));
    return text;
  }

 private:
  std::map<std::string, double> worst_;
  std::map<std::string, int> compared_;
};

std::vector<float> parameter(const exec::Model& model, std::size_t binding) {
  const layers::ParameterBinding& entry = model.lowered().parameters[binding];
  std::vector<float> values(
      static_cast<std::size_t>(model.lowered().graph.type(entry.tensor).shape.elements()));
  model.get_parameter(binding, values);
  return values;
}

const layers::ParameterBinding* binding_of(const exec::Model& model, int layer,
                                           const std::string& array) {
  for (const layers::ParameterBinding& binding : model.lowered().parameters) {
    if (binding.layer == layer && binding.array == array) return &binding;
  }
  return nullptr;
}

/// Plain values of the tensor that a name of index.txt means; nothing when the engine has no such
/// tensor.
std::optional<std::vector<float>> engine_values(const exec::Model& model,
                                                const GoldenTensor& tensor) {
  const layers::Lowered& lowered = model.lowered();
  const auto read = [&](std::optional<graph::TensorId> id) -> std::optional<std::vector<float>> {
    if (!id) return std::nullopt;
    return model.executor().read(*id);
  };
  const auto gradient = [&](const std::string& array) -> std::optional<std::vector<float>> {
    const layers::ParameterBinding* binding = binding_of(model, tensor.layer, array);
    return binding == nullptr ? std::nullopt : read(binding->gradient);
  };
  const auto shadow = [&](const std::string& array) -> std::optional<std::vector<float>> {
    const layers::ParameterBinding* binding = binding_of(model, tensor.layer, array);
    return binding == nullptr ? std::nullopt : read(binding->next);
  };
  const auto layer = static_cast<std::size_t>(tensor.layer);
  if (tensor.name == "output")
    return read((tensor.file == "infer.bin" ? lowered.forward_outputs : lowered.outputs)[layer]);
  if (tensor.name == "bn_batch_mean")
    return read(lowered.graph.find(fmt::format("L{}.mean", tensor.layer)));
  if (tensor.name == "bn_batch_variance")
    return read(lowered.graph.find(fmt::format("L{}.mean.1", tensor.layer)));
  if (tensor.name == "rolling_mean_after") return shadow("rolling_mean");
  if (tensor.name == "rolling_variance_after") return shadow("rolling_variance");
  if (tensor.name == "weight_updates") return gradient("weights");
  if (tensor.name == "bias_updates") return gradient("biases");
  if (tensor.name == "scale_updates") return gradient("scales");
  if (tensor.name == "input_delta") return read(lowered.input_gradient);
  if (tensor.name == "loss_delta") {
    for (const layers::LossBinding& loss : lowered.losses) {
      if (loss.layer == tensor.layer) return read(loss.delta);
    }
  }
  return std::nullopt;
}

class GoldenRun {
 public:
  explicit GoldenRun(const GoldenCase& c) : case_(c), tolerance_(golden_tolerance()) {}

  std::unique_ptr<exec::Model> make(bool training, bool plain, bool fold = false) const {
    layers::Network network = layers::load_network_file((case_.folder / "case.cfg").string());
    auto model = std::make_unique<exec::Model>(
        std::move(network), exec::ModelOptions{.training = training,
                                               .mini_batch = case_.mini_batch_images,
                                               .forward_batch = case_.mini_batch_images,
                                               .threads = 2,
                                               .plan = {.keep_everything = plain},
                                               .fuse_layers = !plain,
                                               .input_gradient = plain && training,
                                               .fold = fold});
    Diagnostics warnings;
    const io::LoadedWeights loaded =
        io::load_weights(*model, case_.folder / "case.weights", io::Purpose::kTraining, warnings);
    EXPECT_TRUE(warnings.entries().empty()) << warnings.entries().front().to_string();
    EXPECT_EQ(loaded.header.seen,
              static_cast<std::uint64_t>(case_.start_iteration * case_.mini_batch_images *
                                         case_.subdivisions));
    return model;
  }

  ops::RunContext context(const exec::Model& model, std::int64_t update,
                          std::int64_t subdivision) const {
    const layers::NetSpec& net = model.network().net;
    const std::int64_t iteration = case_.start_iteration + update;
    return {.iteration = iteration,
            .subdivision = static_cast<int>(subdivision),
            .learning_rate =
                static_cast<float>(train::learning_rate(train::schedule_of(net), iteration)),
            .momentum = net.momentum,
            .decay = net.decay,
            .batch = static_cast<float>(case_.mini_batch_images * case_.subdivisions),
            .max_iterations = net.max_batches,
            .burn_in = net.burn_in};
  }

  double run_mini_batch(exec::Model& model, std::int64_t update, std::int64_t subdivision) const {
    model.executor().poison_transients();
    model.run_mini_batch(case_.mini_batch(case_.images, subdivision),
                         case_.mini_batch(case_.truth, subdivision),
                         context(model, update, subdivision));
    double sum = 0;
    const std::vector<exec::LossReport> losses = model.losses();
    for (const exec::LossReport& loss : losses) sum += loss.cost;
    return sum / static_cast<double>(losses.size());
  }

  void infer(exec::Model& model, Report& report, bool compare_layers) const {
    model.executor().poison_transients();
    model.forward(case_.mini_batch(case_.images, 0));
    if (compare_layers) compare(model, "infer.bin", report);
    compare_detections(model, report);
  }

  void compare(const exec::Model& model, const std::string& file, Report& report) const {
    for (const GoldenTensor& tensor : case_.tensors) {
      if (tensor.file != file) continue;
      std::string kind = "gradients";
      double tolerance = tolerance_.gradients;
      if (tensor.name == "output" || tensor.name.starts_with("bn_") ||
          tensor.name.starts_with("rolling_")) {
        kind = file == "infer.bin" ? "infer" : tensor.name == "output" ? "train" : "statistics";
        tolerance = file == "infer.bin" ? tolerance_.infer : tolerance_.train;
      } else if (tensor.name == "loss_delta") {
        kind = "loss_delta";
        tolerance = tolerance_.loss_delta;
      } else if (tensor.name == "input_delta") {
        kind = "input_delta";
      }
      const std::string what =
          fmt::format("{} {} of layer {} {}", file, tensor.name, tensor.layer, tensor.layer_type);
      const std::vector<layers::Layer>& all = model.network().layers;
      // The reference keeps the terms of a cost by element; the engine sums them at once.
      if (tensor.name == "output" && tensor.layer_type == "cost") continue;
      // Of a frozen layer the reference makes gradients that it never uses, and none of the input:
      // the engine makes none of the layer, and that of the input when asked for.
      const std::size_t gradient_of = tensor.layer < 0 ? 0 : static_cast<std::size_t>(tensor.layer);
      if ((kind == "gradients" || kind == "input_delta") && all[gradient_of].frozen) continue;
      const std::optional<std::vector<float>> actual = engine_values(model, tensor);
      if (!actual) {
        ADD_FAILURE() << what << ": the engine has no such tensor";
        continue;
      }
      report.add(kind, what, deviation(*actual, tensor.values), tolerance);
    }
  }

  void compare_costs(const exec::Model& model, Report& report) const {
    const std::vector<exec::LossReport> losses = model.losses();
    EXPECT_EQ(losses.size(), case_.layer_costs.size());
    double sum = 0;
    for (const exec::LossReport& loss : losses) {
      sum += loss.cost;
      if (!case_.layer_costs.contains(loss.layer)) {
        ADD_FAILURE() << "layer " << loss.layer << " has a cost";
        continue;
      }
      add_cost(fmt::format("cost of layer {}", loss.layer), loss.cost,
               case_.layer_costs.at(loss.layer), report);
    }
    add_cost("cost", sum / static_cast<double>(losses.size()), case_.cost, report);
  }

  /// Three updates on the whole batch; weights by their change.
  void update(exec::Model& model, Report& report) const {
    const std::vector<std::vector<float>> start = all_parameters(model);
    bool averages = false;
    for (std::size_t u = 1; u <= case_.updates.size(); ++u) {
      const auto number = static_cast<std::int64_t>(u);
      double cost = 0;
      for (std::int64_t s = 0; s < case_.subdivisions; ++s)
        cost += run_mini_batch(model, number, s);
      const GoldenUpdate& expected = case_.updates[u - 1];
      add_cost(fmt::format("cost of update {}", u), cost, expected.cost_sum, report);
      ops::RunContext run = context(model, number, 0);
      run.averaging = train::averaging_at(model.network().net, run.iteration, averages);
      averages |= run.averaging != ops::Averaging::kOff;
      report.add("rate", fmt::format("rate of update {}", u),
                 std::abs(run.learning_rate - expected.learning_rate) / expected.learning_rate,
                 1e-5);
      model.executor().poison_transients();
      EXPECT_EQ(model.find_non_finite_gradient(run), std::nullopt);
      model.executor().poison_transients();
      model.update(run);
      const std::string file = fmt::format("after_{}.weights", u);
      if (case_.has_file(file)) compare_weights(model, file, false, start, report);
      const std::string average = fmt::format("ema_{}.weights", u);
      if (case_.has_file(average)) compare_weights(model, average, true, start, report);
    }
  }

 private:
  void add_cost(const std::string& what, double actual, double expected, Report& report) const {
    report.add("cost", fmt::format("{} is {}, want {}", what, actual, expected),
               std::isfinite(actual)
                   ? std::abs(actual - expected) / std::max(std::abs(expected), 1e-3)
                   : std::numeric_limits<double>::infinity(),
               tolerance_.cost);
  }

  static std::vector<std::vector<float>> all_parameters(const exec::Model& model) {
    std::vector<std::vector<float>> values;
    for (std::size_t i = 0; i < model.lowered().parameters.size(); ++i)
      values.push_back(parameter(model, i));
    return values;
  }

  void compare_weights(const exec::Model& model, const std::string& file, bool averaged,
                       const std::vector<std::vector<float>>& start, Report& report) const {
    const io::WeightsLayout layout = io::weights_layout(model.network());
    Diagnostics warnings;
    const io::Weights expected =
        io::read_weights(case_.folder / file, layout, io::Purpose::kEvaluation, warnings);
    for (std::size_t i = 0; i < start.size(); ++i) {
      const layers::ParameterBinding& binding = model.lowered().parameters[i];
      for (std::size_t l = 0; l < layout.size(); ++l) {
        if (layout[l].layer != binding.layer) continue;
        for (std::size_t k = 0; k < layout[l].arrays.size(); ++k) {
          if (layout[l].arrays[k].name != binding.array) continue;
          std::vector<float> change = averaged && binding.average
                                          ? model.executor().read(*binding.average)
                                          : parameter(model, i);
          std::vector<float> reference = expected.values[l][k];
          ASSERT_EQ(change.size(), reference.size());
          for (std::size_t n = 0; n < change.size(); ++n) {
            change[n] -= start[i][n];
            reference[n] -= start[i][n];
          }
          report.add("weights",
                     fmt::format("{} {} of layer {}", file, binding.array, binding.layer),
                     deviation(change, reference, 1e-6), tolerance_.weights);
        }
      }
    }
  }

  void compare_detections(const exec::Model& model, Report& report) const {
    const std::vector<NetworkHead> heads = heads_of(model.network());
    std::vector<std::vector<float>> outputs;
    for (const NetworkHead& head : heads) {
      outputs.push_back(model.executor().read(
          *model.lowered().forward_outputs[static_cast<std::size_t>(head.layer)]));
    }
    for (const GoldenDetections& d : case_.detections) {
      eval::DecodeOptions options{.threshold = static_cast<float>(d.threshold)};
      if (d.letterbox) options.letterboxed_image = {d.image_w, d.image_h};
      eval::DetectionList list = decode_heads(model.network(), heads, outputs, options);
      const std::optional<eval::NmsKind> kind = eval::parse_nms_kind(d.nms_kind);
      ASSERT_TRUE(kind) << d.nms_kind;
      if (d.nms > 0) {
        eval::suppress(list, {.kind = *kind,
                              .threshold = static_cast<float>(d.nms),
                              .beta = static_cast<float>(d.beta)});
      }
      match(case_.rows(d.key), list, d, report);
    }
  }

  /// Pairs the rows one to one; only a row on the threshold may be missing on either side.
  void match(const std::vector<DetectionRow>& expected, const eval::DetectionList& list,
             const GoldenDetections& d, Report& report) const {
    std::vector<DetectionRow> actual;
    const double sx = d.relative ? 1 : 1.0 / d.image_w;  // errors are of relative coordinates
    const double sy = d.relative ? 1 : 1.0 / d.image_h;
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (int c = 0; c < list.classes(); ++c) {
        const float p = list.probabilities(i)[static_cast<std::size_t>(c)];
        const eval::Box& b = list[i].box;
        if (p > 0) actual.push_back({c, p, b.x, b.y, b.w, b.h, list[i].objectness});
      }
    }
    const auto on_threshold = [&](const DetectionRow& row) {
      return std::abs(row.probability - d.threshold) < 1e-4 ||
             std::abs(row.objectness - d.threshold) < 1e-4;
    };
    double worst = 0;
    for (const DetectionRow& want : expected) {
      auto best = actual.end();
      double least = std::numeric_limits<double>::infinity();
      for (auto it = actual.begin(); it != actual.end(); ++it) {
        if (it->class_id != want.class_id) continue;
        const double error =
            std::max({std::abs(it->probability - want.probability),
                      std::abs(it->objectness - want.objectness), std::abs(it->x - want.x * sx),
                      std::abs(it->y - want.y * sy), std::abs(it->w - want.w * sx),
                      std::abs(it->h - want.h * sy)});
        if (error < least) {
          least = error;
          best = it;
        }
      }
      if (least <= tolerance_.detections) {
        actual.erase(best);
        worst = std::max(worst, least);
      } else if (!on_threshold(want)) {
        worst = std::numeric_limits<double>::infinity();
        ADD_FAILURE() << d.key << ": missing class " << want.class_id << " probability "
                      << want.probability;
      }
    }
    for (const DetectionRow& row : actual) {
      if (on_threshold(row)) continue;
      worst = std::numeric_limits<double>::infinity();
      ADD_FAILURE() << d.key << ": class " << row.class_id << " probability " << row.probability
                    << " is too many";
    }
    report.add("detections", d.key, worst, tolerance_.detections);
  }

  const GoldenCase& case_;
  GoldenTolerance tolerance_;
};

/// The reason when the engine refuses the case by name of what it cannot do.
std::optional<std::string> refusal(const GoldenRun& run, bool training) {
  try {
    run.make(training, true);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidConfig) throw;
    return error.message();
  }
  return std::nullopt;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, AgreesWithTheReference) {
  const GoldenCase c = golden_case(GetParam());
  const GoldenRun run(c);
  const std::optional<std::string> no_inference = refusal(run, false);
  EXPECT_EQ(no_inference.has_value(), kNotRunAtAll.contains(c.name))
      << "the list of what is not run is out of date: "
      << no_inference.value_or("the engine runs it");
  if (no_inference) {
    fmt::print("{}: unsupported: {}\n", c.name, *no_inference);
    GTEST_SKIP() << "unsupported: " << *no_inference;
  }
  Report report;
  std::optional<std::string> no_training;
  if (c.trains) no_training = refusal(run, true);
  EXPECT_EQ(no_training.has_value(), kNotTrained.contains(c.name))
      << "the list of what is not trained is out of date: "
      << no_training.value_or("the engine trains it");
  const bool trains = c.trains && !no_training;
  {
    const auto model = run.make(trains, true);
    run.infer(*model, report, true);
    if (trains) {
      for (std::int64_t s = 0; s < c.subdivisions; ++s) {
        const std::string file = s == 0 ? "train.bin" : fmt::format("train_{}.bin", s);
        if (!c.has_file(file)) break;
        run.run_mini_batch(*model, 1, s);
        run.compare(*model, file, report);
        if (s == 0) run.compare_costs(*model, report);
      }
      model->abandon_iteration();
      run.update(*model, report);
    }
  }
  {  // the same numbers with shared bytes and folded shortcuts
    const auto model = run.make(trains, false);
    run.infer(*model, report, false);
    if (trains) run.update(*model, report);
  }
  for (const bool plain : {true, false}) {  // batch norms and activations in the convolutions
    const auto model = run.make(false, plain, true);
    run.infer(*model, report, plain);
  }
  EXPECT_GT(report.compared("infer"), 0);
  if (trains) {
    EXPECT_GT(report.compared("gradients"), 0);
    EXPECT_GT(report.compared("cost"), 0);
  }
  fmt::print("{}:{}{}\n", c.name, report.line(),
             no_training ? fmt::format(" unsupported: training: {}", *no_training) : "");
  if (no_training) GTEST_SKIP() << "inference agrees; training is unsupported: " << *no_training;
}

INSTANTIATE_TEST_SUITE_P(All, Golden, ::testing::ValuesIn(golden_names()),
                         [](const auto& test) { return test.param; });

TEST(GoldenSet, ListsOnlyCasesThatExist) {
  const std::vector<std::string> names = golden_names();
  EXPECT_GT(names.size(), 0U);
  if (std::getenv("LANTERN_GOLDEN") != nullptr) return;  // another folder may hold fewer cases
  for (const auto* list : {&kNotRunAtAll, &kNotTrained}) {
    for (const std::string& name : *list) EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  }
}

}  // namespace
}  // namespace lantern::test
