#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "device/host_tier.hpp"
#include "device/sim.hpp"
#include "exec/evicting_program.hpp"
#include "exec/malloc_count.hpp"

namespace lantern::test {
namespace {

using exec::Executor;
using exec::ExecutorOptions;
using graph::ProgramKind;
using plan::Instruction;
using Evict = Chain::Evict;

constexpr std::array kEverywhere{Evict::kToHost, Evict::kToFile, Evict::kToBoth};

DeviceSpec fast_device() { return {.name = "test", .memory = 64_MiB, .host_memory = 64_MiB}; }

// Options of an executor with the tiers of a simulated device.
ExecutorOptions on_device(const plan::Program& program, const DeviceSpec& spec = fast_device(),
                          const device::FaultPlan& faults = {}) {
  const device::SimulatedDevice device =
      device::make_simulated_device(spec, {.arena_bytes = program.arena_bytes,
                                           .host_bytes = program.host_bytes,
                                           .file_bytes = program.file_bytes,
                                           .folder = ".",
                                           .faults = faults});
  return {.arena = device.arena,
          .host = device.host,
          .file = device.file,
          .poison = true,
          .compare_copies = true};
}

TEST(Streams, WhatIsEvictedComesBackBitForBit) {
  for (const Evict evict : kEverywhere) {
    for (const int layers : {1, 3, 9}) {
      const Chain chain{.layers = layers, .evict = evict};
      Executor executor(chain.selection(), chain.program(), on_device(chain.program()));
      EXPECT_TRUE(same_bits(chain.run(executor), chain.expected())) << layers;
    }
  }
}

TEST(Streams, WithoutPoisonAndComparisonToo) {
  const Chain chain{.layers = 9, .evict = Evict::kToBoth};
  ExecutorOptions options = on_device(chain.program());
  options.poison = options.compare_copies = false;
  Executor executor(chain.selection(), chain.program(), options);
  EXPECT_TRUE(same_bits(chain.run(executor, 5), chain.expected(5)));
}

TEST(Streams, ThroughALinkAndItsRing) {
  DeviceSpec spec = fast_device();
  spec.host = {.out_bytes_per_second = 1e9, .in_bytes_per_second = 1e9, .latency_seconds = 1e-4};
  const Chain chain{.layers = 5, .evict = Evict::kToBoth};
  Executor executor(chain.selection(), chain.program(), on_device(chain.program(), spec));
  EXPECT_TRUE(same_bits(chain.run(executor), chain.expected()));
}

TEST(Streams, NoDelayOfCopiesChangesABit) {
  const Chain chain{.layers = 6, .bytes = 8_KiB, .evict = Evict::kToBoth};
  const std::vector<float> expected = chain.expected();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    device::FaultPlan faults;
    faults.delay = [seed](device::Direction direction, std::int64_t copy) {
      Rng rng(seed, "delay", static_cast<std::uint32_t>(direction),
              static_cast<std::uint32_t>(copy));
      const float chance = rng.uniform(0.0F, 1.0F);
      return chance < 0.5F ? 0.0 : 1e-3 * static_cast<double>(chance - 0.5F);
    };
    Executor executor(chain.selection(), chain.program(),
                      on_device(chain.program(), fast_device(), faults));
    ASSERT_TRUE(same_bits(chain.run(executor), expected)) << "seed " << seed;
  }
}

TEST(Streams, CopiesRunBesideTheComputing) {
  // Every op and every copy takes 10 ms: one after the other they would take three times as long.
  static constexpr double kStep = 0.01;
  Chain chain{.layers = 8, .bytes = 64_KiB};
  chain.before_op = [](int) { std::this_thread::sleep_for(std::chrono::duration<double>(kStep)); };
  DeviceSpec spec = fast_device();
  const double rate = static_cast<double>(chain.bytes) / (0.9 * kStep);
  spec.host = {.out_bytes_per_second = rate, .in_bytes_per_second = rate};
  ExecutorOptions options = on_device(chain.program(), spec);
  options.poison = options.compare_copies = false;
  Executor executor(chain.selection(), chain.program(), options);
  chain.feed(executor);
  double best = 1e9;
  const double bound = (17 + 2) * kStep * 1.15;
  for (int i = 0; i < 10 && best > bound; ++i) {
    const auto start = std::chrono::steady_clock::now();
    executor.run(ProgramKind::kMiniBatch, {});
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  // 17 ops; the last copy out and the first copy in are waited for with nothing beside them.
  EXPECT_GT(best, 17 * kStep);
  EXPECT_LT(best, bound);
}

TEST(Streams, SeveralProgramsTakeTurnsInOneArena) {
  const Chain large{.layers = 9, .bytes = 64_KiB, .evict = Evict::kToHost};
  const Chain small{.layers = 4, .bytes = 16_KiB, .evict = Evict::kToHost};
  ExecutorOptions options = on_device(large.program());
  Executor a(large.selection(), large.program(), options);
  Executor b(small.selection(), small.program(), options);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(same_bits(large.run(a), large.expected()));
    EXPECT_TRUE(same_bits(small.run(b), small.expected()));
  }
  EXPECT_EQ(a.arena(), b.arena());
}

TEST(Streams, AnArenaOfItsOwnMayBeGuarded) {
  const Chain chain{.layers = 4, .evict = Evict::kToHost};
  const plan::Program program = chain.program();
  const auto host =
      std::make_shared<device::HostTier>(device::HostTierOptions{.bytes = program.host_bytes});
  Executor executor(chain.selection(), program, {.host = host, .guard = true, .poison = true});
  EXPECT_TRUE(same_bits(chain.run(executor), chain.expected()));
}

TEST(Streams, RefusesAProgramThatItsTiersCannotHold) {
  const Chain chain{.layers = 4, .evict = Evict::kToHost};
  const plan::Program program = chain.program();
  const auto host =
      std::make_shared<device::HostTier>(device::HostTierOptions{.bytes = program.host_bytes / 2});
  EXPECT_THROW(Executor(chain.selection(), program, ExecutorOptions{.host = host}), Error);
  EXPECT_THROW(Executor(chain.selection(), program, ExecutorOptions{}), Error);
}

TEST(Streams, StayOnTheirCores) {
  const Chain chain{.layers = 4, .evict = Evict::kToHost};
  std::thread apart([&] {  // the calling thread is moved
    ExecutorOptions options = on_device(chain.program());
    options.compute_cores = {0};
    options.copy_cores = {0};
    Executor executor(chain.selection(), chain.program(), options);
    EXPECT_TRUE(same_bits(chain.run(executor), chain.expected()));
    options.copy_cores = {100000};
    EXPECT_THROW(Executor(chain.selection(), chain.program(), options), Error);
  });
  apart.join();
}

TEST(Streams, AllocateNothingInARun) {
  if (!MallocCount::works()) GTEST_SKIP() << "a sanitizer owns malloc in this build";
  for (const Evict evict : kEverywhere) {
    const Chain chain{.layers = 8, .evict = evict};
    ExecutorOptions options = on_device(chain.program());
    options.trace = std::make_shared<exec::Trace>();
    Executor executor(chain.selection(), chain.program(), options);
    chain.run(executor, 1);
    const MallocCount mallocs(0);
    for (int i = 0; i < 3; ++i) {
      executor.run(ProgramKind::kMiniBatch, {});
      executor.run(ProgramKind::kUpdate, {});
    }
    const long count = mallocs.count();
    EXPECT_EQ(count, 0);
  }
}

TEST(Streams, FindTheFirstTensorThatIsNotFinite) {
  const Chain chain{.layers = 7, .evict = Evict::kToHost};
  ExecutorOptions options = on_device(chain.program());
  options.poison = false;
  Executor executor(chain.selection(), chain.program(), options);
  chain.feed(executor);
  EXPECT_EQ(executor.find_non_finite(ProgramKind::kMiniBatch, {}), std::nullopt);
  reinterpret_cast<float*>(executor.bytes(chain.input()).data())[3] = std::nanf("");
  EXPECT_EQ(executor.find_non_finite(ProgramKind::kMiniBatch, {}), "a0");
  EXPECT_TRUE(same_bits(chain.run(executor), chain.expected()));  // nothing was left under way
}

// The virtual device.

TEST(VirtualDevice, GivesTheSameBitsHoweverLateItCopies) {
  for (const Evict evict : kEverywhere) {
    for (const bool late : {false, true}) {
      const Chain chain{.layers = 9, .evict = evict};
      ExecutorOptions options = on_device(chain.program());
      options.virtual_device =
          DeviceSpec{.host = {.out_bytes_per_second = 1, .in_bytes_per_second = 1},
                     .disk = {.out_bytes_per_second = 1, .in_bytes_per_second = 1}};
      options.copy_late = late;
      Executor executor(chain.selection(), chain.program(), options);
      EXPECT_TRUE(same_bits(chain.run(executor), chain.expected()));
    }
  }
}

TEST(VirtualDevice, ShowsAWaitThatIsMissing) {
  const Chain chain{.layers = 9, .evict = Evict::kToHost};
  for (const Instruction::Kind missing :
       {Instruction::Kind::kWaitIn, Instruction::Kind::kWaitOut}) {
    plan::Program program = chain.program();
    std::erase_if(program.of(ProgramKind::kMiniBatch).instructions,
                  [&](const Instruction& i) { return i.kind == missing; });
    ExecutorOptions options = on_device(program);
    options.compare_copies = false;
    options.virtual_device =
        DeviceSpec{.host = {.out_bytes_per_second = 1, .in_bytes_per_second = 1}};
    options.copy_late = true;
    Executor executor(chain.selection(), program, options);
    EXPECT_FALSE(same_bits(chain.run(executor, 1), chain.expected(1)));
  }
}

TEST(VirtualDevice, CountsTimeByTheCostModel) {
  // Ops of 1 s; copies out 1 s + 0.25 s, in 2 s + 0.25 s.
  const Chain chain{.layers = 4, .bytes = 4_KiB, .evict = Evict::kToHost, .op_seconds = 1};
  ExecutorOptions options = on_device(chain.program());
  DeviceSpec spec{
      .host = {.out_bytes_per_second = 4096, .in_bytes_per_second = 2048, .latency_seconds = 0.25}};
  options.virtual_device = spec;
  Executor executor(chain.selection(), chain.program(), options);
  chain.run(executor, 1);
  EXPECT_EQ(executor.virtual_seconds(), 1);  // the update: one op
  executor.run(ProgramKind::kMiniBatch, {});
  // a0 a1 a2 end at 1 2 3. Copies out end at 2.25, 3.5, 4.75. a3 may start at 3 (its place was
  // a0's) and ends at 4; its copy ends at 6. Copies in end at 8.25, 10.5, 12.75 for a3 a2 a1:
  // g0 9.25, g1 11.5, g2 13.75. a0 takes the place of a3 and starts after g0: 12.75 to 15; g3 16,
  // result 17.
  EXPECT_EQ(executor.virtual_seconds(), 17);

  spec.op_seconds = 0.5;  // every op costs that besides, and twice as much while a copy runs
  spec.contention = 2;
  options.virtual_device = spec;
  Executor slow(chain.selection(), chain.program(), options);
  chain.feed(slow);
  slow.run(ProgramKind::kMiniBatch, {});
  // a0 1.5; a1, a2 beside copies: 4.5, 7.5; copies out end 2.75, 5.75, 8.75; a3 starts at 7.5
  // beside one: 10.5, its copy ends at 11.75. In: 14, 16.25, 18.5. g0 starts at 14 beside one: 17.
  // a0: in from 18.5 to 20.75. g1 from 17: 20; g2 from 20: 23; g3 from 23, nothing beside: 24.5;
  // result 26.
  EXPECT_EQ(slow.virtual_seconds(), 26);
}

}  // namespace
}  // namespace lantern::test
