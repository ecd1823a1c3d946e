#include "cli/bench_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "cli/run_support.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "device/machine.hpp"
#include "exec/model.hpp"
#include "io/model_weights.hpp"

namespace lantern::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostProfiled = 3;  // iterations that are measured op by op
constexpr std::uint64_t kSeed = 1;

// The arena is claimed page by page: what does not fit beside it is refused before it is touched.
void check_fits(const exec::Model& model, std::int64_t count) {
  const auto image = model.network().input().elements() + model.lowered().truth_floats;
  const Bytes input = count * image * static_cast<Bytes>(sizeof(float));
  device::require_memory(model.executor().arena_bytes() + input,
                         fmt::format("arena and pictures of {} images", count),
                         "fewer images need less");
}

// Noise for pictures: the time of a dense network does not depend on what it sees.
std::vector<float> synthetic_images(const layers::Network& network, std::int64_t count) {
  std::vector<float> images(static_cast<std::size_t>(count * network.input().elements()));
  Rng rng(kSeed, "bench images");
  for (float& value : images) value = rng.uniform();
  return images;
}

/// Classes of the last detection head that is trained; nothing for a classifier.
std::optional<int> box_classes(const layers::Network& network, const layers::Lowered& lowered) {
  std::optional<int> classes;
  for (const layers::LossBinding& loss : lowered.losses) {
    const auto keys = layers::detection_keys(network.layers[static_cast<std::size_t>(loss.layer)]);
    if (keys) classes = keys->classes;
  }
  return classes;
}

// Detectors: eight boxes a picture, rows of x y w h class track, ended by x = 0. Classifiers: one
// class of all.
std::vector<float> synthetic_truth(const layers::Network& network, const layers::Lowered& lowered,
                                   std::int64_t count) {
  constexpr std::size_t kRow = 6, kBoxes = 8;
  const auto floats = static_cast<std::size_t>(lowered.truth_floats);
  std::vector<float> truth(floats * static_cast<std::size_t>(count), 0.0F);
  const std::optional<int> classes = box_classes(network, lowered);
  for (std::size_t i = 0; floats > 0 && i < static_cast<std::size_t>(count); ++i) {
    float* image = truth.data() + i * floats;
    Rng rng(kSeed, "bench truth", 0, static_cast<std::uint32_t>(i));
    if (!classes) {
      image[rng.uniform_int(0, lowered.truth_floats - 1)] = 1;
      continue;
    }
    for (std::size_t k = 0; k < std::min(kBoxes, floats / kRow); ++k) {
      float* row = image + k * kRow;
      row[0] = rng.uniform(0.2F, 0.8F);
      row[1] = rng.uniform(0.2F, 0.8F);
      row[2] = rng.uniform(0.05F, 0.4F);
      row[3] = rng.uniform(0.05F, 0.4F);
      row[4] = static_cast<float>(rng.uniform_int(0, *classes - 1));
    }
  }
  return truth;
}

// One network with synthetic input, ready to be timed.
class Bench {
 public:
  Bench(const BenchCase& what, Terminal& terminal)
      : is_training_(what.is_training),
        model_(what.network, {.training = is_training_,
                              .mini_batch = what.images,
                              .forward_batch = is_training_ ? 0 : what.images,
                              .threads = what.threads,
                              .fold = !is_training_}) {
    check_fits(model_, what.images);
    images_ = synthetic_images(what.network, what.images);
    if (is_training_) truth_ = synthetic_truth(what.network, model_.lowered(), what.images);
    model_.initialise(kSeed);
    if (!what.weights.empty()) load(what.weights, terminal);
    context_ = {.seed = kSeed,
                .learning_rate = 1e-5F,
                .momentum = what.network.net.momentum,
                .decay = what.network.net.decay,
                .batch = static_cast<float>(what.images)};
  }

  double iterate() {
    const auto start = Clock::now();
    if (is_training_) {
      ++context_.iteration;
      model_.run_mini_batch(images_, truth_, context_);
      if (const auto tensor = model_.find_non_finite_gradient(context_)) {
        throw Error(ErrorCode::kFailed, *tensor, "is not finite in iteration {}",
                    context_.iteration);
      }
      model_.update(context_);
    } else {
      model_.forward(images_);
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  exec::Model& model() { return model_; }

 private:
  void load(const std::string& path, Terminal& terminal) {
    Diagnostics warnings;
    io::load_weights(model_, path, is_training_ ? io::Purpose::kTraining : io::Purpose::kEvaluation,
                     warnings);
    for (const Diagnostics::Entry& entry : warnings.entries()) terminal.warning(entry.to_string());
  }

  bool is_training_;
  exec::Model model_;
  std::vector<float> images_, truth_;
  ops::RunContext context_;
};

std::vector<OpRow> profile(Bench& bench, std::int64_t iterations) {
  exec::Executor& executor = bench.model().executor();
  executor.set_profiling(true);
  for (std::int64_t i = 0; i < iterations; ++i) bench.iterate();
  std::map<std::tuple<int, std::string, std::string>, OpRow> rows;
  const auto& layers = bench.model().network().layers;
  for (const exec::OpTime& time : executor.profile()) {
    if (time.runs == 0) continue;
    const graph::SelectedOp& op = executor.selected().ops[time.op];
    OpRow& row = rows[{op.layer, op.op, op.kernel}];
    row.layer = op.layer;
    if (op.layer >= 0) row.section = layers[static_cast<std::size_t>(op.layer)].section;
    row.op = op.op;
    row.kernel = op.kernel;
    row.seconds += time.seconds / static_cast<double>(iterations);
    row.flops += op.flops * static_cast<double>(time.runs) / static_cast<double>(iterations);
  }
  executor.set_profiling(false);
  std::vector<OpRow> list;
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return list;
}

}  // namespace

double BenchResult::quantile(double part) const {
  LANTERN_ASSERT(!seconds.empty(), "something was timed");
  std::vector<double> values = seconds;
  std::ranges::sort(values);
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

BenchResult run_case(const BenchCase& what, std::int64_t iterations, bool profiled,
                     Terminal& terminal) {
  Bench bench(what, terminal);
  const auto run = [&] {
    const double seconds = bench.iterate();
    stop_if_interrupted(terminal);
    return seconds;
  };
  BenchResult result{
      .width = what.network.net.width, .height = what.network.net.height, .images = what.images};
  for (int i = 0; i < kWarmUp; ++i) run();
  for (std::int64_t i = 0; i < iterations; ++i) {
    result.seconds.push_back(run());
    terminal.progress("bench", i + 1, iterations,
                      static_cast<double>(what.images) / result.seconds.back(), "images/s");
  }
  result.peak = device::peak_resident_memory();
  const exec::Executor& executor = bench.model().executor();
  result.planned = executor.arena_bytes();
  // Each program has its ops once, and an iteration runs all programs of its kind once.
  for (const graph::SelectedOp& op : executor.selected().ops) result.flops += op.flops;
  if (profiled) result.ops = profile(bench, std::min(iterations, kMostProfiled));
  return result;
}

}  // namespace lantern::cli
