#include "op_bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/rng.hpp"
#include "ops/select.hpp"
#include "plan/planner.hpp"

namespace lantern::bench {

using graph::ProgramKind;
using graph::Role;
using graph::TensorId;

std::vector<float> some_values(std::int64_t count) {
  // A short table, repeated: its length is prime, so that rows, channels and images differ.
  static const std::vector<float> table = [] {
    std::vector<float> values(4093);
    Rng rng(1, "bench");
    for (float& value : values) value = rng.normal();
    return values;
  }();
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = table[i % table.size()];
  return values;
}

void set_counters(benchmark::State& state, double flops, double bytes) {
  using benchmark::Counter;
  if (flops > 0) {
    state.counters["GFLOP"] = Counter(flops * 1e-9, Counter::kIsIterationInvariantRate);
  }
  state.counters["GB"] = Counter(bytes * 1e-9, Counter::kIsIterationInvariantRate);
}

std::string name_of(const Conv& conv) {
  return fmt::format("{}to{}_k{}_{}x{}", conv.in, conv.out, conv.size, conv.side, conv.side);
}
std::string name_of(const Map& map) { return fmt::format("{}x{}x{}", map.c, map.side, map.side); }
std::string name_of(const Pool& pool) {
  return fmt::format("{}x{}x{}_size{}_stride{}", pool.c, pool.side, pool.side, pool.size,
                     pool.stride);
}

TensorId OpBench::add(const std::string& name, const Shape& shape, Role role) {
  const TensorId id = graph_.add_tensor(name, {shape}, role);
  filled_.push_back(id);
  return id;
}

TensorId OpBench::input(const std::string& name, const Shape& shape, std::vector<float> values) {
  const TensorId id = graph_.add_tensor(name, {shape}, Role::kInput);
  given_.emplace_back(id, std::move(values));
  return id;
}

void OpBench::make_ready() {
  graph_.verify();
  ops::Selection selection = ops::select(graph_, {.threads = options_.threads});
  const graph::Selected& selected = selection.selected;
  int reorders = 0;
  for (const graph::SelectedOp& op : selected.ops) {
    if (op.program != ProgramKind::kMiniBatch) continue;
    flops_ += op.flops;
    for (const std::uint32_t tensor : op.reads)
      bytes_ += static_cast<double>(selected.tensors[tensor].bytes);
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      const graph::SelectedTensor& tensor = selected.tensors[op.writes[i]];
      // Scratch stays in the cache; what is added to is read as well.
      if (tensor.role != Role::kScratch)
        bytes_ += static_cast<double>(tensor.bytes) * (op.accumulates[i] ? 2 : 1);
    }
    if (op.op == "reorder") {
      ++reorders;
    } else if (label_.find(op.kernel) == std::string::npos) {
      label_ += (label_.empty() ? "" : " ") + op.kernel;
    }
  }
  if (reorders > 0) label_ += fmt::format(" +{} reorder", reorders);

  plan::Program program = plan::make_program(selected);
  std::vector<bool> placed(selected.tensors.size(), false);
  for (const plan::Buffer& buffer : program.buffers) placed[buffer.tensor] = true;
  executor_ =
      std::make_unique<exec::Executor>(std::move(selection), std::move(program), options_.threads);
  for (const TensorId id : filled_) {
    if (placed[graph::index(id)])
      executor_->write(id, some_values(graph_.type(id).shape.elements()));
  }
  for (const auto& [id, values] : given_) executor_->write(id, values);
  executor_->run(ProgramKind::kForward, {});
}

void OpBench::run(benchmark::State& state) {
  // A rate of 1e-6 keeps weights finite however often an update is repeated.
  const ops::RunContext context{.iteration = 1,
                                .learning_rate = 1e-6F,
                                .decay = 5e-4F,
                                .batch = static_cast<float>(options_.mini_batch)};
  executor_->run(ProgramKind::kMiniBatch, context);
  for (auto _ : state) executor_->run(ProgramKind::kMiniBatch, context);
  set_counters(state, flops_, bytes_);
  state.SetLabel(label_);
}

void add(const Options& options, const std::string& name, std::function<void(OpBench&)> build) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [options, name, build](benchmark::State& state) {
                                 // google-benchmark calls this several times while it looks for an
                                 // iteration count.
                                 static std::unique_ptr<OpBench> current;
                                 static std::string current_name;
                                 if (current_name != name) {
                                   current.reset();
                                   current = std::make_unique<OpBench>(options);
                                   build(*current);
                                   current->make_ready();
                                   current_name = name;
                                 }
                                 current->run(state);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace lantern::bench
