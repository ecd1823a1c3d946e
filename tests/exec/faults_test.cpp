// What goes wrong with a copy ends the run with a message that says where, leaves the weights as
// they were, and the next run is as good as ever.

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "device/host_tier.hpp"
#include "device/sim.hpp"
#include "exec/evicting_program.hpp"

namespace lantern::test {
namespace {

using device::Direction;
using device::Fault;
using device::FaultPlan;
using exec::Executor;
using exec::ExecutorOptions;
using graph::ProgramKind;
using Evict = Chain::Evict;

ExecutorOptions with_faults(const Chain& chain, const FaultPlan& faults) {
  const plan::Program program = chain.program();
  const device::SimulatedDevice device =
      device::make_simulated_device({.name = "test", .memory = 64_MiB, .host_memory = 64_MiB},
                                    {.arena_bytes = program.arena_bytes,
                                     .host_bytes = program.host_bytes,
                                     .file_bytes = program.file_bytes,
                                     .folder = ".",
                                     .faults = faults});
  return {.arena = device.arena, .host = device.host, .file = device.file, .poison = true};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs a mini-batch that must fail, and returns what it said. The parameter is untouched, and
// running again gives what it should.
std::string failure(const Chain& chain, const ExecutorOptions& options) {
  Executor executor(chain.selection(), chain.program(), options);
  chain.feed(executor);
  const auto parameter = executor.bytes(chain.parameter());
  const std::vector<std::byte> before(parameter.begin(), parameter.end());
  const auto start = std::chrono::steady_clock::now();
  std::string message = "nothing went wrong";
  try {
    executor.run(ProgramKind::kMiniBatch, {});
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_LT(seconds_since(start), 20);
  EXPECT_EQ(std::memcmp(before.data(), parameter.data(), before.size()), 0);
  EXPECT_TRUE(same_bits(chain.run(executor), chain.expected())) << message;
  return message;
}

void expect_in(std::initializer_list<std::string> parts, const std::string& message) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}

TEST(Faults, ACopyThatFails) {
  const Chain chain{.layers = 8, .evict = Evict::kToHost};
  for (const std::int64_t copy : {1, 4, 8}) {
    expect_in({"copy failed: " + std::string(std::strerror(EIO)), "the copy out of",
               "a" + std::to_string(copy - 1), "made by forward", "to host memory"},
              failure(chain, with_faults(
                                 chain, {.host = {{.direction = Direction::kOut, .copy = copy}}})));
    expect_in({"copy failed: " + std::string(std::strerror(EIO)), "the copy in of",
               "a" + std::to_string(8 - copy), "needed by backward", "from host memory"},
              failure(chain,
                      with_faults(chain, {.host = {{.direction = Direction::kIn, .copy = copy}}})));
  }
}

TEST(Faults, ACopyThatFailsWithAVirtualDevice) {
  const Chain chain{.layers = 8, .evict = Evict::kToHost};
  for (const bool late : {false, true}) {
    ExecutorOptions options =
        with_faults(chain, {.host = {{.direction = Direction::kIn, .copy = 2}}});
    options.virtual_device =
        DeviceSpec{.host = {.out_bytes_per_second = 1, .in_bytes_per_second = 1}};
    options.copy_late = late;
    expect_in({"the copy in of a6", "needed by backward g1"}, failure(chain, options));
  }
}

TEST(Faults, AFullDiskAndABrokenOne) {
  const Chain chain{.layers = 8, .evict = Evict::kToFile};
  for (const int error : {ENOSPC, EIO}) {
    FaultPlan faults;
    faults.pieces = {.error_piece = 3, .error = error};
    expect_in(
        {std::strerror(error), "at byte " + std::to_string(2 * chain.bytes), "the copy out of a2"},
        failure(chain, with_faults(chain, faults)));
  }
}

TEST(Faults, AShortWriteIsGoneOnWith) {
  const Chain chain{.layers = 8, .evict = Evict::kToFile};
  FaultPlan faults;
  faults.pieces.short_piece = 3;
  EXPECT_EQ(failure(chain, with_faults(chain, faults)), "nothing went wrong");
}

TEST(Faults, ALateCopyIsWaitedFor) {
  const Chain chain{.layers = 8, .evict = Evict::kToHost};
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    ExecutorOptions options = with_faults(
        chain,
        {.host = {
             {.kind = Fault::Kind::kLate, .direction = direction, .copy = 3, .seconds = 0.3}}});
    EXPECT_EQ(failure(chain, options), "nothing went wrong");
  }
}

TEST(Faults, ACopyThatDoesNotEnd) {
  const Chain chain{.layers = 8, .evict = Evict::kToBoth};
  ExecutorOptions options = with_faults(
      chain, {.host = {{.kind = Fault::Kind::kNever, .direction = Direction::kOut, .copy = 2}}});
  options.watchdog_seconds = 0.2;
  expect_in({"the copy out of a2", "made by forward a2", "to host memory", "0.2 s"},
            failure(chain, options));
  options = with_faults(
      chain, {.file = {{.kind = Fault::Kind::kNever, .direction = Direction::kIn, .copy = 1}}});
  options.watchdog_seconds = 0.2;
  expect_in({"the copy in of a7", "needed by backward g0", "from the file in .", "0.2 s"},
            failure(chain, options));
}

TEST(Faults, ALongCopyThatGetsOnIsNoFault) {
  // 4 MiB at 8 MiB/s take far longer than the watchdog's patience, but pieces keep coming.
  const Chain chain{.layers = 1, .bytes = 4_MiB, .evict = Evict::kToHost};
  const auto host = std::make_shared<device::HostTier>(
      device::HostTierOptions{.bytes = chain.program().host_bytes,
                              .link = {.out_bytes_per_second = 8e6, .in_bytes_per_second = 8e6}});
  Executor executor(chain.selection(), chain.program(), {.host = host, .watchdog_seconds = 0.4});
  EXPECT_TRUE(same_bits(chain.run(executor, 1), chain.expected(1)));
}

// A device that hears nothing: it goes on even when the copy is given up.
class DeafTier final : public device::Tier {
 public:
  explicit DeafTier(Bytes bytes) : behind_({.bytes = bytes}) {}
  Bytes bytes() const override { return behind_.bytes(); }
  std::string name() const override { return "a deaf device"; }
  using Tier::read;
  using Tier::write;
  void write(Bytes offset, std::span<const std::byte> from, device::CopyControl&) override {
    if (!std::exchange(slept_, true)) std::this_thread::sleep_for(std::chrono::seconds(1));
    behind_.write(offset, from);
  }
  void read(Bytes offset, std::span<std::byte> to, device::CopyControl&) override {
    behind_.read(offset, to);
  }

 private:
  device::HostTier behind_;
  bool slept_ = false;
};

TEST(Faults, ACopyThatCannotBeGivenUp) {
  const Chain chain{.layers = 8, .evict = Evict::kToHost};
  const auto host = std::make_shared<DeafTier>(chain.program().host_bytes);
  Executor executor(chain.selection(), chain.program(), {.host = host, .watchdog_seconds = 0.1});
  chain.feed(executor);
  const auto message = [&]() -> std::string {
    try {
      executor.run(ProgramKind::kMiniBatch, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing went wrong";
  };
  expect_in({"has not moved a byte", "a0", "a deaf device"}, message());
  expect_in({"is still under way", "a0", "a deaf device"}, message());
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_TRUE(same_bits(chain.run(executor), chain.expected()));
}

TEST(Faults, AnExecutorMayEndWhileACopyHangs) {
  const Chain chain{.layers = 8, .evict = Evict::kToHost};
  const auto start = std::chrono::steady_clock::now();
  {
    ExecutorOptions options = with_faults(
        chain, {.host = {{.kind = Fault::Kind::kNever, .direction = Direction::kOut, .copy = 1}}});
    options.watchdog_seconds = 0.1;
    Executor executor(chain.selection(), chain.program(), options);
    EXPECT_THROW(executor.run(ProgramKind::kMiniBatch, {}), Error);
  }
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Faults, AnOpThatThrowsLeavesNoCopyUnderWay) {
  Chain chain{.layers = 8, .evict = Evict::kToHost};
  bool throws = true;
  chain.before_op = [&throws](int op) {
    if (op == 5 && std::exchange(throws, false))
      throw Error(ErrorCode::kFailed, "", "this op has no luck");
  };
  const FaultPlan late{.host = {{.kind = Fault::Kind::kLate, .copy = 4, .seconds = 0.2}}};
  expect_in({"this op has no luck"}, failure(chain, with_faults(chain, late)));
}

// Changes a byte of the arena while copy `copy` out is under way, or of what copy `copy` in brings.
class ChangingTier final : public device::Tier {
 public:
  ChangingTier(Bytes bytes, Direction direction, int copy)
      : behind_({.bytes = bytes}), direction_(direction), copy_(copy) {}
  Bytes bytes() const override { return behind_.bytes(); }
  std::string name() const override { return behind_.name(); }
  using Tier::read;
  using Tier::write;
  void write(Bytes offset, std::span<const std::byte> from, device::CopyControl&) override {
    behind_.write(offset, from);
    if (direction_ == Direction::kOut && --copy_ == 0)
      const_cast<std::byte*>(from.data())[5] ^= std::byte{1};
  }
  void read(Bytes offset, std::span<std::byte> to, device::CopyControl&) override {
    behind_.read(offset, to);
    if (direction_ == Direction::kIn && --copy_ == 0) to[5] ^= std::byte{1};
  }

 private:
  device::HostTier behind_;
  Direction direction_;
  int copy_;
};

TEST(Faults, ComparingNoticesAChangedByte) {
  const Chain chain{.layers = 8, .evict = Evict::kToHost};
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    const auto host = std::make_shared<ChangingTier>(chain.program().host_bytes, direction, 2);
    // Without threads: the change is no race of the test's own.
    const ExecutorOptions options{.host = host,
                                  .compare_copies = true,
                                  .virtual_device = DeviceSpec{.host = {.out_bytes_per_second = 1,
                                                                        .in_bytes_per_second = 1}}};
    if (direction == Direction::kOut) {
      expect_in({"changed while they were copied", "the copy out of a1"}, failure(chain, options));
    } else {
      expect_in({"other bytes come back", "the copy in of a6"}, failure(chain, options));
    }
  }
}

}  // namespace
}  // namespace lantern::test
