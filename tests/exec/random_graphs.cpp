#include "exec/random_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "device/file_tier.hpp"
#include "device/host_tier.hpp"
#include "exec/model.hpp"
#include "graph/random_network.hpp"

namespace lantern::test {

void GraphCounts::add(const GraphCounts& other) {
  for (const auto& [what, count] : other.seen) seen[what] += count;
  least_ops = std::min(least_ops, other.least_ops);
  most_ops = std::max(most_ops, other.most_ops);
}

namespace {

using graph::ProgramKind;

constexpr int kSubdivisions = 2;
constexpr Bytes kPlenty = 1_GiB;

struct Tiers {
  const char* name;
  bool host, file;
};
constexpr Tiers kTiers[] = {{"RAM only", false, false},
                            {"host memory", true, false},
                            {"a file", false, true},
                            {"host memory and a file", true, true}};

class RandomGraph {
 public:
  RandomGraph(std::uint64_t number, GraphCounts& counts)
      : number_(number), rng_(number, "random graph"), counts_(counts) {
    RandomNetworkOptions network;
    network.everything = true;
    // A layer lowers to one to three ops each way, residual blocks to more.
    network.layers = static_cast<int>(rng_.uniform_int(0, 5));
    options_.training = true;
    options_.mini_batch = rng_.uniform_int(1, 9);
    options_.forward_batch = 0;
    options_.threads = rng_.uniform() < 0.1F ? 2 : 1;
    network.mini_batch = static_cast<int>(options_.mini_batch);
    text_ = random_network(rng_, network);
    Diagnostics diagnostics;
    network_ = layers::load_network("random", text_, diagnostics);
    diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  }

  std::vector<std::string> run() {
    plan::PlanOptions all;
    all.keep_everything = true;
    expected_ = trained(all, Tiers{"everything kept", false, false});
    look_at(exec::compile(network_, options_));
    for (const Tiers& tiers : kTiers) {
      try {
        try_budget(tiers);
      } catch (const std::exception& error) {
        fail(tiers, {}, error.what());
      }
    }
    return std::move(faults_);
  }

 private:
  float log_uniform(float low, float high) {
    return std::exp(rng_.uniform(std::log(low), std::log(high)));
  }
  LinkSpec random_link() {
    return {.out_bytes_per_second = log_uniform(1e8F, 1e12F),
            .in_bytes_per_second = log_uniform(1e8F, 1e12F),
            .latency_seconds = rng_.coin() ? 0 : log_uniform(1e-8F, 1e-5F)};
  }

  void fail(const Tiers& tiers, const plan::PlanOptions& plan, const std::string& what) {
    faults_.push_back(fmt::format(
        "graph {} (mini-batch {}, {} threads), {}, memory {}, chunks {}, plan seed {}: {}\n"
        "  again: LANTERN_GRAPHS_FROM={} LANTERN_GRAPHS=1 ./test_random_graphs",
        number_, options_.mini_batch, options_.threads, tiers.name,
        plan.memory == plan::PlanOptions::kUnlimited ? std::string("unlimited")
                                                     : fmt::format("{}", plan.memory),
        plan.chunks, plan.seed, what, number_));
  }

  void look_at(const exec::Compiled& unlimited) {
    std::int64_t ops = 0;
    const graph::Selected& selected = unlimited.selection.selected;
    for (const graph::SelectedOp& op : selected.ops) {
      if (op.program != ProgramKind::kMiniBatch) continue;
      const bool convolves = op.op.starts_with("conv");
      ++counts_.seen[convolves && op.images == 0 ? "convolutions that run whole" : "other ops"];
      if (convolves && (op.kernel.find("gemm") != std::string::npos ||
                        op.kernel.find("ref") != std::string::npos))
        ++counts_.seen["convolutions by gemm or reference kernels"];
      if (convolves && op.kernel.find("jit") != std::string::npos)
        ++counts_.seen["convolutions by jit kernels"];
      if (op.image_group == 1) ++counts_.seen["sums image by image"];
      if (op.image_group > 1) ++counts_.seen["sums over image groups"];
      ++ops;
    }
    counts_.seen["ops"] += ops;
    counts_.least_ops = std::min(counts_.least_ops, ops);
    counts_.most_ops = std::max(counts_.most_ops, ops);
    ++counts_.seen["graphs"];
    most_ = unlimited.program.arena_bytes;
    selected_ = selected;
  }

  void try_budget(const Tiers& tiers) {
    plan::PlanOptions plan;
    plan.evaluations = 300;
    plan.seed = static_cast<std::uint64_t>(rng_.uniform_int(1, 1000));
    plan.op_seconds = rng_.coin() ? 0 : 1e-6;
    plan.contention = rng_.coin() ? 1 : 1.2;
    if (tiers.host) {
      plan.host = random_link();
      plan.host_memory = kPlenty;
    }
    if (tiers.file) {
      plan.disk = random_link();
      plan.disk_memory = kPlenty;
    }
    if (tiers.host && tiers.file) plan.host_memory = most_ / rng_.uniform_int(2, 16);
    if (rng_.uniform() < 0.15F) plan.chunks = 1 << rng_.uniform_int(1, 3);
    const Bytes least = plan::smallest_memory(selected_, plan);
    const float part = rng_.uniform() < 0.25F ? 0.0F : rng_.uniform();
    plan.memory =
        least + static_cast<Bytes>(static_cast<double>(part * part) *
                                   static_cast<double>(std::max<Bytes>(0, most_ - least)));
    try {
      if (trained(plan, tiers) != expected_) fail(tiers, plan, "other bits than everything kept");
    } catch (const std::exception& error) {
      fail(tiers, plan, error.what());
    }
  }

  void count(const plan::Program& program) {
    ++counts_.seen["plans"];
    const plan::InstructionList& list = program.of(ProgramKind::kMiniBatch);
    for (const plan::Copy& copy : list.outs) {
      const bool file = program.slots[copy.slot].tier == plan::Tier::kFile;
      ++counts_.seen[file ? "copies to the file" : "copies to host memory"];
    }
    counts_.seen["copies in"] += static_cast<std::int64_t>(list.ins.size());
    for (const plan::Run& run : list.runs) counts_.seen["runs again"] += run.again ? 1 : 0;
    counts_.seen["plans with chunks"] += program.prediction.chunks > 1 ? 1 : 0;
    for (std::uint32_t i = 0; i < program.buffers.size(); ++i) {
      const std::uint32_t of = program.buffers[i].alias_of;
      counts_.seen["buffers in place"] += of != plan::kNone && of != i ? 1 : 0;
    }
  }

  // Persistent bytes after the mini-batches, and after the update.
  std::vector<std::byte> trained(const plan::PlanOptions& plan, const Tiers& tiers) {
    const bool simulated = rng_.uniform() < 0.8F;  // else copied by threads
    const bool late = rng_.coin();
    exec::ModelOptions options = options_;
    options.plan = plan;
    options.executor = [&](const plan::Program& program) {
      exec::ExecutorOptions executor{.guard = true, .poison = true, .compare_copies = true};
      if (program.host_bytes > 0) {
        executor.host = std::make_shared<device::HostTier>(
            device::HostTierOptions{.bytes = program.host_bytes});
      }
      if (program.file_bytes > 0) {
        executor.file = std::make_shared<device::FileTier>(
            device::FileTierOptions{.folder = ".", .bytes = program.file_bytes});
      }
      if (simulated) {
        executor.virtual_device = DeviceSpec{.name = "virtual",
                                             .memory = kPlenty,
                                             .op_seconds = plan.op_seconds,
                                             .host = plan.host,
                                             .disk = plan.disk,
                                             .contention = plan.contention};
      }
      executor.copy_late = late && simulated;
      return executor;
    };
    exec::Model model(network_, options);
    const plan::Program& program = model.executor().program();
    if (!plan.keep_everything) count(program);
    if (program.arena_bytes > plan.memory)
      fail(tiers, plan, fmt::format("the arena has {} bytes", program.arena_bytes));
    model.initialise(7);
    const std::int64_t images = options.mini_batch;
    std::vector<float> pixels(static_cast<std::size_t>(images * network_.input().elements()));
    const std::int64_t truth_floats = model.lowered().truth_floats;
    std::vector<float> truth(static_cast<std::size_t>(images * truth_floats));
    std::vector<std::byte> state;
    ops::RunContext context{.seed = 3,
                            .iteration = 1,
                            .learning_rate = 0.001F,
                            .momentum = 0.9F,
                            .decay = 0.0005F,
                            .batch = static_cast<float>(images * kSubdivisions),
                            .max_iterations = 100};
    for (int k = 0; k < kSubdivisions; ++k) {
      context.subdivision = k;
      make_data(k, pixels, truth, truth_floats);
      model.run_mini_batch(pixels, truth, context);
      if (simulated) compare_clock(model.executor(), plan, tiers);
      append(model.executor(), state);
    }
    model.update(context);
    append(model.executor(), state);
    expect_finite(model, plan, tiers);
    return state;
  }

  void make_data(int subdivision, std::vector<float>& pixels, std::vector<float>& truth,
                 std::int64_t truth_floats) const {
    Rng rng(number_, "data", 0, static_cast<std::uint32_t>(subdivision));
    for (float& value : pixels) value = rng.uniform();
    std::ranges::fill(truth, 0.0F);
    for (std::int64_t image = 0; image < options_.mini_batch; ++image) {
      for (std::int64_t box = 0; box < 2; ++box) {
        float* row = truth.data() + image * truth_floats + box * 6;
        for (int v = 0; v < 4; ++v) row[v] = rng.uniform(0.15F, 0.7F);
        row[4] = static_cast<float>(rng.uniform_int(0, 1));
      }
    }
  }

  static void append(exec::Executor& executor, std::vector<std::byte>& state) {
    const auto* begin = executor.arena()->at(0);
    state.insert(state.end(), begin, begin + executor.program().persistent_bytes);
  }

  void compare_clock(const exec::Executor& executor, const plan::PlanOptions& plan,
                     const Tiers& tiers) {
    const double predicted = executor.program().prediction.seconds;
    const double seconds = executor.virtual_seconds();
    if (std::abs(predicted - seconds) > 0.01 * seconds)
      fail(tiers, plan, fmt::format("predicted {} s, the clock shows {} s", predicted, seconds));
  }

  // Equal bits of NaN would prove nothing.
  void expect_finite(const exec::Model& model, const plan::PlanOptions& plan, const Tiers& tiers) {
    for (const layers::ParameterBinding& binding : model.lowered().parameters) {
      for (const float value : model.executor().read(binding.tensor)) {
        if (std::isfinite(value)) continue;
        fail(tiers, plan, "a parameter is not finite");
        return;
      }
    }
  }

  std::uint64_t number_;
  Rng rng_;
  GraphCounts& counts_;
  exec::ModelOptions options_;
  std::string text_;
  layers::Network network_;
  graph::Selected selected_;
  Bytes most_ = 0;
  std::vector<std::byte> expected_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> try_random_graph(std::uint64_t number, GraphCounts& counts) {
  try {
    return RandomGraph(number, counts).run();
  } catch (const std::exception& error) {
    return {fmt::format("graph {}: {}", number, error.what())};
  }
}

}  // namespace lantern::test
