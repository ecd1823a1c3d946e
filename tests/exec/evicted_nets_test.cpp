// Whole networks with the planner's own programs on a simulated device: what is evicted to host
// memory and to a file changes no bit, and takes the time that was predicted.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "device/sim.hpp"
#include "exec/budget_nets.hpp"
#include "exec/evicting_program.hpp"
#include "plan/timeline.hpp"

namespace lantern::test {
namespace {

using graph::ProgramKind;

// Links on which nothing is ever worth computing again.
DeviceSpec device_with_links() {
  return {
      .name = "test",
      .memory = 4_GiB,
      .host_memory = 4_GiB,
      .op_seconds = 1e-5,
      .host = {.out_bytes_per_second = 4e9, .in_bytes_per_second = 3e9, .latency_seconds = 1e-5},
      .disk = {.out_bytes_per_second = 1e9, .in_bytes_per_second = 2e9, .latency_seconds = 1e-4},
      .contention = 1.25};
}

// Options of a model in little memory, the rest of it in the tiers given.
exec::ModelOptions in_little_memory(const layers::Network& network, bool host, bool disk) {
  exec::ModelOptions options{.training = true,
                             .mini_batch = std::int64_t{5} * network.net.time_steps,
                             .forward_batch = 0,
                             .threads = 2};
  const exec::Compiled unlimited = exec::compile(network, options);
  const DeviceSpec device = device_with_links();
  options.plan.op_seconds = device.op_seconds;
  options.plan.contention = device.contention;
  if (host) {
    options.plan.host = device.host;
    options.plan.host_memory = disk ? 2_MiB : 1_GiB;
  }
  if (disk) {
    options.plan.disk = device.disk;
    options.plan.disk_memory = 1_GiB;
  }
  const Bytes least = plan::smallest_memory(unlimited.selection.selected, options.plan);
  options.plan.memory = least + (unlimited.program.arena_bytes - least) / 8;
  return options;
}

exec::ExecutorOptions on_device(const plan::Program& program) {
  const device::SimulatedDevice device =
      device::make_simulated_device(device_with_links(), {.arena_bytes = program.arena_bytes,
                                                          .host_bytes = program.host_bytes,
                                                          .file_bytes = program.file_bytes,
                                                          .folder = "."});
  return {.arena = device.arena,
          .host = device.host,
          .file = device.file,
          .poison = true,
          .compare_copies = true};
}

// One of each kind of state: random draws, time steps, norms over mini-batches, learned sums.
constexpr std::array<std::string_view, 5> kNets{"dropout", "recurrent", "cross-iteration-norms",
                                                "weighted-sums", "yolov4-tiny"};

class EvictedNets : public ::testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(EvictedNets, ComputeTheSameBits) {
  const auto [host, disk] = GetParam();
  for (const BudgetNet& net : budget_nets()) {
    if (std::ranges::find(kNets, net.name) == kNets.end()) continue;
    const layers::Network network = load(net);
    exec::ModelOptions options = in_little_memory(network, host, disk);
    exec::ModelOptions free = options;
    free.plan = {};
    const std::vector<float> expected = trained_state(network, free, 2);
    int copies = 0;
    for (const bool is_virtual : {false, true}) {
      options.executor = [&](const plan::Program& program) {
        copies += static_cast<int>(program.of(ProgramKind::kMiniBatch).outs.size());
        EXPECT_LE(program.arena_bytes, options.plan.memory);
        exec::ExecutorOptions result = on_device(program);
        if (is_virtual) result.virtual_device = device_with_links();
        result.copy_late = is_virtual;
        return result;
      };
      EXPECT_TRUE(same_bits(trained_state(network, options, 2), expected))
          << net.name << (is_virtual ? ", copied late" : ", copied by threads");
    }
    EXPECT_GT(copies, 0) << net.name << " evicts nothing";
  }
}

TEST_P(EvictedNets, TakeTheTimeOfTheReplayedProgram) {
  const auto [host, disk] = GetParam();
  const layers::Network network = load(budget_nets().front());
  exec::ModelOptions options = in_little_memory(network, host, disk);
  options.executor = [](const plan::Program& program) {
    exec::ExecutorOptions result = on_device(program);
    result.virtual_device = device_with_links();
    return result;
  };
  exec::Model model(network, options);
  exec::Executor& executor = model.executor();
  executor.run(ProgramKind::kMiniBatch, {.batch = 5});
  const plan::Timeline replayed = plan::replay(executor.selected(), executor.program(),
                                               ProgramKind::kMiniBatch, device_with_links());
  EXPECT_GT(executor.virtual_seconds(), 0);
  EXPECT_NEAR(executor.virtual_seconds(), replayed.seconds, 1e-9 * replayed.seconds);
}

INSTANTIATE_TEST_SUITE_P(Tiers, EvictedNets,
                         ::testing::Values(std::pair{true, false}, std::pair{false, true},
                                           std::pair{true, true}));

}  // namespace
}  // namespace lantern::test
