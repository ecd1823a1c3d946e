// What the planner says of a plan is what its execution shows.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/host_tier.hpp"
#include "exec/model.hpp"
#include "layers/network.hpp"
#include "plan/planner.hpp"

namespace lantern::plan {
namespace {

using graph::ProgramKind;

/// Small, so that they can be run as well.
TEST(ExecutedPrediction, IsWhatTheVirtualClockShows) {
  const DeviceSpec device{.name = "virtual",
                          .memory = 1_GiB,
                          .host_memory = 1_GiB,
                          .flops_per_second = 2.5e11,
                          .memory_bytes_per_second = 2e10,
                          .op_seconds = 5e-6,
                          .host = {4e9, 3e9, 1e-5},
                          .contention = 1.1};
  for (const char* name : {"yolov3-tiny", "yolov4-tiny", "yolov3-spp"}) {
    const layers::Network network = layers::resized(
        layers::load_network_file(LANTERN_TEST_DATA "/cfg/" + std::string(name) + ".cfg"), 64, 64);
    exec::ModelOptions options;
    options.training = true;
    options.mini_batch = 8;
    options.forward_batch = 0;
    options.device = device;
    const Bytes all = exec::compile(network, options).program.arena_bytes;
    options.plan.host_memory = device.host_memory;
    options.plan.host = device.host;
    options.plan.contention = device.contention;
    options.plan.op_seconds = device.op_seconds;
    options.plan.evaluations = 1000;
    const Bytes least =
        smallest_memory(exec::compile(network, options).selection.selected, options.plan);
    for (const double part : {0.5, 0.2, 0.05}) {
      options.plan.memory = least + static_cast<Bytes>(part * static_cast<double>(all - least));
      options.executor = [&](const Program& program) {
        exec::ExecutorOptions executor{.guard = true, .poison = true, .virtual_device = device};
        if (program.host_bytes > 0) {
          executor.host = std::make_shared<device::HostTier>(
              device::HostTierOptions{.bytes = program.host_bytes});
        }
        return executor;
      };
      exec::Model model(network, options);
      exec::Executor& executor = model.executor();
      executor.run(ProgramKind::kMiniBatch, {.batch = 8});
      const plan::Prediction& predicted = executor.program().prediction;
      fmt::print("{:12} {:>9}: predicted {:.6f} s, the clock shows {:.6f} s, {} out\n", name,
                 format_bytes(options.plan.memory), predicted.seconds, executor.virtual_seconds(),
                 format_bytes(predicted.bytes_out));
      EXPECT_NEAR(executor.virtual_seconds(), predicted.seconds, 0.01 * predicted.seconds);
      EXPECT_EQ(executor.arena()->bytes(), executor.program().arena_bytes);
      EXPECT_LE(executor.program().arena_bytes, options.plan.memory);
    }
  }
}

}  // namespace
}  // namespace lantern::plan
