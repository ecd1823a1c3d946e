// No memory option changes a bit of the result (memory.md, section 4).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "device/file_tier.hpp"
#include "exec/budget_nets.hpp"
#include "names.hpp"

namespace lantern::test {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// `sequences` of time_steps images each.
exec::ModelOptions options_for(const layers::Network& network, std::int64_t sequences) {
  exec::ModelOptions options;
  options.training = true;
  options.mini_batch = sequences * network.net.time_steps;
  options.forward_batch = 0;
  options.threads = 2;
  return options;
}

class Budgets : public ::testing::TestWithParam<BudgetNet> {};

TEST_P(Budgets, ComputeTheSameBits) {
  const layers::Network network = load(GetParam());
  const int iterations = full_run() ? 20 : 2;
  exec::ModelOptions options = options_for(network, full_run() ? 8 : 5);
  const std::vector<float> free = trained_state(network, options, iterations);
  ASSERT_FALSE(free.empty());
  const exec::Compiled unlimited = exec::compile(network, options);
  const Bytes most = unlimited.program.arena_bytes;
  const Bytes least = plan::smallest_memory(unlimited.selection.selected, options.plan);
  ASSERT_LT(least, most);
  for (const double part : {0.5, 0.25, 0.12, 0.0}) {
    options.plan.memory = least + static_cast<Bytes>(part * static_cast<double>(most - least));
    exec::Compiled compiled = exec::compile(network, options);
    EXPECT_LE(compiled.program.arena_bytes, options.plan.memory);
    EXPECT_TRUE(same_bits(trained_state(network, options, std::move(compiled), iterations), free))
        << GetParam().name << " with " << format_bytes(options.plan.memory) << " of "
        << format_bytes(most);
  }
}

TEST_P(Budgets, ComputeTheSameBitsWithAFile) {
  const layers::Network network = load(GetParam());
  exec::ModelOptions options = options_for(network, 5);
  const std::vector<float> free = trained_state(network, options, 2);
  const exec::Compiled unlimited = exec::compile(network, options);
  // So fast that moving is worth more than computing again.
  options.plan.disk = {
      .out_bytes_per_second = 1e11, .in_bytes_per_second = 1e11, .latency_seconds = 1e-7};
  options.plan.disk_memory = 4_GiB;
  const Bytes least = plan::smallest_memory(unlimited.selection.selected, options.plan);
  options.plan.memory = least + (unlimited.program.arena_bytes - least) / 8;
  Bytes moved = 0;
  options.executor = [&](const plan::Program& program) {
    moved = program.file_bytes;
    exec::ExecutorOptions result{.poison = true, .compare_copies = true};
    if (moved > 0) {
      result.file = std::make_shared<device::FileTier>(
          device::FileTierOptions{.folder = ".", .bytes = moved});
    }
    return result;
  };
  EXPECT_TRUE(same_bits(trained_state(network, options, 2), free)) << GetParam().name;
  EXPECT_GT(moved, 0) << GetParam().name << " evicts nothing";
}

TEST_P(Budgets, BelowTheSmallestAreRefusedWithIt) {
  const layers::Network network = load(GetParam());
  exec::ModelOptions options = options_for(network, 4);
  const exec::Compiled unlimited = exec::compile(network, options);
  const Bytes least = plan::smallest_memory(unlimited.selection.selected, options.plan);
  options.plan.memory = least - 4096;
  try {
    exec::compile(network, options);
    FAIL() << "a plan of less than the least";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResource);
    EXPECT_NE(std::string(error.what()).find(format_bytes(least)), std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Budgets, ::testing::ValuesIn(budget_nets()), test::kByName);

class Chunks : public ::testing::TestWithParam<int> {};

TEST_P(Chunks, ComputeTheSameBits) {
  for (const BudgetNet& net : budget_nets()) {
    const bool is_text = net.cfg.find('\n') != std::string::npos;
    if (!full_run() && !is_text && net.name != "yolov4-tiny") continue;
    const layers::Network network = load(net);
    exec::ModelOptions options = options_for(network, GetParam());
    const std::vector<float> whole = trained_state(network, options, 2);
    for (const int chunks : {2, 4, 8}) {
      options.plan.chunks = chunks;
      EXPECT_TRUE(same_bits(trained_state(network, options, 2), whole))
          << net.name << " in " << chunks << " chunks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(MiniBatches, Chunks, ::testing::Values(32, 7));

}  // namespace
}  // namespace lantern::test
