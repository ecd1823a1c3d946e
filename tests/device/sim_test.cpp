#include "device/sim.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "core/error.hpp"
#include "device/pin.hpp"

namespace lantern::device {
namespace {

DeviceSpec small_device() {
  return {.name = "small",
          .memory = 1_MiB,
          .host_memory = 4_MiB,
          .host = {.out_bytes_per_second = 1e9, .in_bytes_per_second = 1e9},
          .disk = {.out_bytes_per_second = 1e9, .in_bytes_per_second = 1e9}};
}

std::string refusal(const SimOptions& options) {
  try {
    make_simulated_device(small_device(), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResource);
    return error.what();
  }
  return "nothing was refused";
}

void expect_in(std::string_view part, const std::string& message) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(SimulatedDevice, HasOnlyTheTiersAskedFor) {
  const SimulatedDevice plain = make_simulated_device(small_device(), {.arena_bytes = 1_MiB});
  EXPECT_EQ(plain.arena->bytes(), 1_MiB);
  EXPECT_EQ(plain.host, nullptr);
  EXPECT_EQ(plain.file, nullptr);
  const SimulatedDevice both = make_simulated_device(
      small_device(),
      {.arena_bytes = 4_KiB, .host_bytes = 1_MiB, .file_bytes = 8_KiB, .folder = "."});
  EXPECT_EQ(both.host->bytes(), 1_MiB);
  EXPECT_EQ(both.file->bytes(), 8_KiB);
}

TEST(SimulatedDevice, RefusesWhatItHasNotGot) {
  expect_in("small has 1.0 MiB", refusal({.arena_bytes = 2_MiB}));
  expect_in("4.0 MiB", refusal({.arena_bytes = 4_KiB, .host_bytes = 5_MiB}));
  expect_in("host memory", refusal({.host_bytes = 1_MiB, .faults = {.refuse_host = true}}));
  const std::string full =
      refusal({.file_bytes = 3_MiB, .folder = "here", .faults = {.disk_full = true}});
  expect_in("here", full);
  expect_in("3.0 MiB", full);
  expect_in("No space left", full);
}

TEST(ArenaDeathTest, GuardPagesEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch = [](Bytes at) {
    std::signal(SIGSEGV, SIG_DFL);
    const Arena arena(8_KiB, {.guard = true});
    *const_cast<volatile std::byte*>(arena.at(at)) = std::byte{1};
    std::exit(0);
  };
  EXPECT_EXIT(touch(8_KiB), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(touch(-1), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(touch(8_KiB - 1), testing::ExitedWithCode(0), "");
}

TEST(Pin, RefusesCoresThatAreNotThere) {
  const std::vector<int> none{100000};
  EXPECT_THROW(pin_thread(pthread_self(), none), Error);
}

}  // namespace
}  // namespace lantern::device
