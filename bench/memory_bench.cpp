// Trains a network on random pictures in a given memory and prints seconds per iteration, measured
// and predicted, beside the same without a limit. See docs/memory.md for the commands.
//
//   bench_memory NET.cfg --mini-batch 32 --memory 8G --link 0.19
//
// --link GB/s is the simulated card of memory.md, section 7: its memory is an arena between guard
// pages, its host tier lies behind a link of so many GB/s each way (0: the measured arithmetic rate
// / 625 FLOP per byte, that of an RTX 2070 on PCIe 3), one thread computes on one core and the
// copies run on the other. --disk DIR evicts to a file instead. With neither, what does not fit is
// computed again.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"
#include "device/file_tier.hpp"
#include "device/machine.hpp"
#include "device/sim.hpp"
#include "exec/executor.hpp"
#include "exec/measure.hpp"
#include "exec/measure_machine.hpp"
#include "layers/lower.hpp"
#include "layers/network.hpp"
#include "plan/checker.hpp"
#include "plan/planner.hpp"

namespace {

using namespace lantern;
using graph::ProgramKind;

struct Options {
  std::string cfg, memory, disk;
  int size = 0;
  std::int64_t mini_batch = 8;
  double link = -1;
  double slice = 1;  // of the transient memory
  int threads = 2;
  int warm_up = 1, iterations = 3;
  bool skip_unlimited = false;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double gib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(1_GiB); }

class Bench {
 public:
  explicit Bench(Options options)
      : options_(std::move(options)), device_(exec::measure_cpu(options_.threads)) {
    network_ = layers::load_network_file(options_.cfg);
    if (options_.size > 0) network_ = layers::resized(network_, options_.size, options_.size);
    if (options_.link >= 0) device_.contention = 1;  // copies have a core of their own
    if (!options_.disk.empty())
      exec::measure_disk(device_, options_.disk, 256_MiB, options_.threads);
    meter_ = std::make_unique<exec::CostMeter>(options_.threads, device_);
  }

  void run() {
    plan::PlanOptions unlimited{.op_seconds = device_.op_seconds};
    double flops = 0;
    {
      const ops::Selection selection = select();
      for (const graph::SelectedOp& op : selection.selected.ops) {
        if (op.program == ProgramKind::kMiniBatch) flops += op.flops;
      }
    }
    double base = 0;
    if (!options_.skip_unlimited) base = measure("without a limit", unlimited, flops);
    if (options_.memory.empty()) return;
    plan::PlanOptions limited = unlimited;
    limited.contention = device_.contention;
    limited.memory = budget();
    if (options_.link >= 0) {
      const double rate = options_.link > 0 ? options_.link * 1e9 : rate_ / 625;
      device_.host = {rate, rate, 1e-5};
      limited.host = device_.host;
      limited.host_memory = 256_GiB;
    } else if (!options_.disk.empty()) {
      limited.disk = device_.disk;
      limited.disk_memory = 256_GiB;
    }
    const double seconds = measure("in " + options_.memory, limited, flops);
    if (base > 0) fmt::print("slow-down measured {:+.1f} %\n", 100 * (seconds / base - 1));
  }

 private:
  ops::Selection select() {
    lowered_ = layers::lower(
        network_, {.training = true, .mini_batch = options_.mini_batch, .forward_batch = 0});
    ops::Selection selection = ops::select(lowered_.graph, {.threads = options_.threads});
    graph::Selected timed = selection.selected;
    meter_->fill(selection, timed);
    selection.selected = std::move(timed);
    return selection;
  }

  // The part of the budget that --slice leaves to transients (memory.md 7: a net at half the side
  // has a quarter of the activations).
  Bytes budget() {
    const std::optional<Bytes> memory = parse_bytes(options_.memory);
    if (!memory) throw Error(ErrorCode::kUsage, "--memory", "not a size: {}", options_.memory);
    if (options_.slice == 1) return *memory;
    const Bytes parameters = plan::make_program(select().selected).persistent_bytes;
    return parameters +
           static_cast<Bytes>(options_.slice * static_cast<double>(*memory - parameters));
  }

  double measure(const std::string& what, const plan::PlanOptions& plan_options, double flops) {
    ops::Selection selection = select();
    const double planning = now();
    plan::Program program = plan::make_program(selection.selected, plan_options);
    const double planned = now();
    plan::check(selection.selected, program);
    const plan::Prediction p = program.prediction;
    exec::ExecutorOptions options{.threads = options_.threads};
    provide(program, options);
    const Bytes arena = program.arena_bytes;
    const Bytes host = program.host_bytes;
    const Bytes file = program.file_bytes;
    exec::Executor executor(std::move(selection), std::move(program), options);
    feed(executor);
    std::vector<double> seconds;
    for (int i = 1; i <= options_.warm_up + options_.iterations; ++i) {
      const ops::RunContext context{
          .iteration = i, .learning_rate = 1e-6F, .batch = static_cast<float>(options_.mini_batch)};
      const double start = now();
      executor.run(ProgramKind::kMiniBatch, context);
      executor.run(ProgramKind::kUpdate, context);
      if (i > options_.warm_up) seconds.push_back(now() - start);
    }
    std::ranges::sort(seconds);
    const double median = seconds[seconds.size() / 2];
    rate_ = flops / median;
    fmt::print(
        "{}: {:.3f} s an iteration ({:.3f} to {:.3f}), predicted {:.3f} ({:+.1f} %), {:.2f} "
        "images/s, {:.0f} GFLOP/s\n"
        "  arena {:.3f} GiB, host {:.3f} GiB, file {:.3f} GiB, out {:.2f} GiB ({:.2f} GB/s over "
        "the "
        "iteration), in {:.2f} GiB, recomputing {:.2f} s, chunks {}, planned in {:.2f} s, "
        "predicted "
        "slow-down {:.1f} %, bound {:.1f} %\n"
        "  process peak {:.3f} GiB\n",
        what, median, seconds.front(), seconds.back(), p.seconds, 100 * (p.seconds / median - 1),
        static_cast<double>(options_.mini_batch) / median, rate_ * 1e-9, gib(arena), gib(host),
        gib(file), gib(p.bytes_out), static_cast<double>(p.bytes_out) * 1e-9 / median,
        gib(p.bytes_in), p.recompute_seconds, p.chunks, planned - planning,
        100 * (p.seconds / p.seconds_unlimited - 1), 100 * (p.bound / p.seconds_unlimited - 1),
        gib(device::peak_resident_memory()));
    if (!options_.disk.empty() && file > 0)
      fmt::print("  disk alone: {:.2f} GB/s out, {:.2f} GB/s in\n",
                 device_.disk.out_bytes_per_second * 1e-9, device_.disk.in_bytes_per_second * 1e-9);
    return median;
  }

  void provide(const plan::Program& program, exec::ExecutorOptions& options) const {
    if (options_.link >= 0) {
      options.compute_cores = {0};
      options.copy_cores = {1};
    }
    if (program.host_bytes > 0) {
      DeviceSpec card = device_;
      card.memory = program.arena_bytes;
      card.host_memory = program.host_bytes;
      const device::SimulatedDevice simulated = device::make_simulated_device(
          card, {.arena_bytes = program.arena_bytes, .host_bytes = program.host_bytes});
      options.arena = simulated.arena;
      options.host = simulated.host;
    } else if (program.file_bytes > 0) {
      options.file = std::make_shared<device::FileTier>(
          device::FileTierOptions{.folder = options_.disk, .bytes = program.file_bytes});
    }
  }

  void feed(exec::Executor& executor) const {
    Rng rng(1, "bench");
    const auto random = [&](graph::TensorId tensor, float low, float high) {
      std::vector<float> values(
          static_cast<std::size_t>(lowered_.graph.type(tensor).shape.elements()));
      for (float& value : values) value = rng.uniform(low, high);
      executor.write(tensor, values);
    };
    random(*lowered_.images, 0, 1);
    for (const layers::ParameterBinding& binding : lowered_.parameters) {
      if (binding.array == "weights") random(binding.tensor, -0.02F, 0.02F);
      if (binding.array == "scales") random(binding.tensor, 1, 1);
    }
  }

  Options options_;
  DeviceSpec device_;
  layers::Network network_;
  layers::Lowered lowered_;
  std::unique_ptr<exec::CostMeter> meter_;
  double rate_ = 1e11;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Training in a given memory, beside training without a limit");
  app.add_option("cfg", options.cfg, "network")->required();
  app.add_option("--size", options.size, "width and height, multiples of 32; default: the cfg's");
  app.add_option("--mini-batch", options.mini_batch, "images");
  app.add_option("--memory", options.memory, "bytes of the arena, as 800M or 8G");
  app.add_option("--slice", options.slice, "share of what --memory leaves beside the parameters");
  app.add_option("--link", options.link,
                 "GB/s each way of a simulated card's link, 0: as an RTX 2070");
  app.add_option("--disk", options.disk, "folder to evict to");
  app.add_option("--threads", options.threads, "compute threads");
  app.add_option("--warm-up", options.warm_up, "iterations that are not counted");
  app.add_option("--iterations", options.iterations, "iterations that are");
  app.add_flag("--skip-unlimited", options.skip_unlimited, "only the run with a limit");
  CLI11_PARSE(app, argc, argv);
  try {
    Bench(options).run();
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return exit_code(error.code());
  }
  return 0;
}
