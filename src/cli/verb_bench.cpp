#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "cli/detector.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/rng.hpp"
#include "device/machine.hpp"
#include "exec/model.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kBenchFlags{
    Flag{.name = "batch",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "1",
         .doc = "images of one forward pass",
         .min = 1,
         .max = 4096},
    Flag{.name = "train", .doc = "training iterations instead of forward passes"},
    Flag{.name = "mini_batch",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "images of a training iteration (default batch / subdivisions)",
         .min = 1,
         .max = 1 << 16,
         .needs = "train"},
    Flag{.name = "iterations",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "10",
         .doc = "timed iterations, after two to warm up",
         .min = 1,
         .max = 1000000},
    Flag{.name = "threads",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "compute threads (default the cores that may be used)",
         .min = 1,
         .max = 1024},
    Flag{.name = "precision",
         .kind = ValueKind::kText,
         .value = "fp32",
         .otherwise = "fp32",
         .doc = "number form of the computation"},
    Flag{.name = "json",
         .kind = ValueKind::kOptionalText,
         .value = "FILE",
         .doc = "figures as JSON, to standard output or into FILE"},
};

constexpr int kWarmUp = 2;
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
  Bench(const layers::Network& network, const Arguments& arguments)
      : is_training_(arguments.has("train")),
        count_(is_training_ ? arguments.given_integer("mini_batch").value_or(network.minibatch())
                            : arguments.integer("batch")),
        model_(network, {.training = is_training_,
                         .mini_batch = count_,
                         .forward_batch = is_training_ ? 0 : count_,
                         .threads = compute_threads(arguments),
                         .fold = !is_training_}) {
    check_fits(model_, count_);
    images_ = synthetic_images(network, count_);
    if (is_training_) truth_ = synthetic_truth(network, model_.lowered(), count_);
    model_.initialise(kSeed);
    context_ = {.seed = kSeed,
                .learning_rate = 1e-5F,
                .momentum = network.net.momentum,
                .decay = network.net.decay,
                .batch = static_cast<float>(count_)};
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

  std::int64_t count() const { return count_; }
  bool is_training() const { return is_training_; }
  exec::Model& model() { return model_; }

 private:
  bool is_training_;
  std::int64_t count_;
  exec::Model model_;
  std::vector<float> images_, truth_;
  ops::RunContext context_;
};

/// Time of one op kind with one kernel in one layer, per iteration.
struct Row {
  int layer = -1;
  std::string section, op, kernel;
  double seconds = 0, flops = 0;
  double gflops() const { return seconds > 0 ? flops / seconds * 1e-9 : 0; }
};

std::vector<Row> profile(Bench& bench, std::int64_t iterations) {
  exec::Executor& executor = bench.model().executor();
  executor.set_profiling(true);
  for (std::int64_t i = 0; i < iterations; ++i) bench.iterate();
  std::map<std::tuple<int, std::string, std::string>, Row> rows;
  const auto& layers = bench.model().network().layers;
  for (const exec::OpTime& time : executor.profile()) {
    if (time.runs == 0) continue;
    const graph::SelectedOp& op = executor.selected().ops[time.op];
    Row& row = rows[{op.layer, op.op, op.kernel}];
    row.layer = op.layer;
    if (op.layer >= 0) row.section = layers[static_cast<std::size_t>(op.layer)].section;
    row.op = op.op;
    row.kernel = op.kernel;
    row.seconds += time.seconds / static_cast<double>(iterations);
    row.flops += op.flops * static_cast<double>(time.runs) / static_cast<double>(iterations);
  }
  executor.set_profiling(false);
  std::vector<Row> list;
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return list;
}

// Sums rows that `same` puts together, most time first.
template <typename Key>
std::vector<Row> summed(const std::vector<Row>& rows, Key key) {
  std::map<std::string, Row> sums;
  for (const Row& row : rows) {
    Row& sum = sums[key(row)];
    const double seconds = sum.seconds + row.seconds, flops = sum.flops + row.flops;
    sum = row;
    sum.seconds = seconds;
    sum.flops = flops;
  }
  std::vector<Row> list;
  for (auto& [name, row] : sums) list.push_back(std::move(row));
  std::ranges::sort(list, [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return list;
}

std::string tables(const std::vector<Row>& rows) {
  double total = 0;
  for (const Row& row : rows) total += row.seconds;
  const auto figures = [&](const Row& row) {
    return fmt::format("{:>10.3f} ms {:>5.1f} %{}\n", 1e3 * row.seconds,
                       total > 0 ? 100 * row.seconds / total : 0.0,
                       row.flops > 0 ? fmt::format(" {:>9.1f} GFLOP/s", row.gflops()) : "");
  };
  std::string text = "\nby layer\n";
  for (const Row& row : summed(rows, [](const Row& r) { return fmt::format("{:06}", r.layer); })) {
    const std::string name = row.layer >= 0 ? fmt::format("{:4} {}", row.layer, row.section)
                                            : std::string("   - update");
    text += fmt::format("  {:<42}{}", name, figures(row));
  }
  text += "\nby op and kernel\n";
  for (const Row& row : summed(rows, [](const Row& r) { return r.op + " " + r.kernel; })) {
    text += fmt::format("  {:<42}{}", row.op + " [" + row.kernel + "]", figures(row));
  }
  return text;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::span<const Flag> bench_flags() { return kBenchFlags; }

int run_bench(const Arguments& arguments, Terminal& terminal) {
  const bool to_output = arguments.has("json") && arguments.text("json").empty();
  if (to_output) terminal.reserve_output();
  if (arguments.has("json") && !to_output) check_writable(arguments.text("json"));
  check_precision(arguments);
  watch_interrupts();
  const std::string& path = arguments.positionals.front();
  Bench bench(layers::load_network_file(path), arguments);
  const std::int64_t iterations = arguments.integer("iterations");
  const auto run = [&] {
    const double seconds = bench.iterate();
    if (terminal.interrupted()) throw Error(ErrorCode::kInterrupted, "", "interrupted");
    return seconds;
  };
  for (int i = 0; i < kWarmUp; ++i) run();
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < iterations; ++i) {
    seconds.push_back(run());
    terminal.progress("bench", i + 1, iterations,
                      static_cast<double>(bench.count()) / seconds.back(), "images/s");
  }
  const Bytes peak = device::peak_resident_memory();
  const Bytes planned = bench.model().executor().arena_bytes();
  const double speed = static_cast<double>(bench.count()) / median(seconds);
  const std::vector<Row> rows = profile(bench, std::min(iterations, kMostProfiled));

  std::string each;
  for (const double s : seconds) each += fmt::format(" {:.4f}", s);
  terminal.print(fmt::format(
      "{}: {}, {} images an iteration, {} threads, fp32\n"
      "images per second (median): {:.2f}\nseconds:{}\npeak resident memory: {}\nplanned arena: "
      "{}\n",
      path, bench.is_training() ? "training" : "inference", bench.count(),
      compute_threads(arguments), speed, each, format_bytes(peak), format_bytes(planned)));
  terminal.print(tables(rows));
  if (arguments.has("json")) {
    nlohmann::ordered_json json{{"schema", 1},
                                {"network", path},
                                {"mode", bench.is_training() ? "train" : "inference"},
                                {"images", bench.count()},
                                {"threads", compute_threads(arguments)},
                                {"precision", "fp32"},
                                {"images_per_second", speed},
                                {"seconds", seconds},
                                {"peak_rss_bytes", peak},
                                {"planned_bytes", planned},
                                {"layers", nlohmann::ordered_json::array()}};
    for (const Row& row : rows) {
      json["layers"].push_back({{"layer", row.layer},
                                {"section", row.section},
                                {"op", row.op},
                                {"kernel", row.kernel},
                                {"seconds", row.seconds},
                                {"gflop_per_second", row.gflops()}});
    }
    terminal.print_json(
        json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
        arguments.text("json"));
  }
  return 0;
}

}  // namespace lantern::cli
