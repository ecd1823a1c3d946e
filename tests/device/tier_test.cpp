#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "device/arena.hpp"
#include "device/bounced_tier.hpp"
#include "device/file_tier.hpp"
#include "device/host_tier.hpp"
#include "device/machine.hpp"
#include "device/measure.hpp"

namespace lantern::device {
namespace {

namespace fs = std::filesystem;

void fill(const Arena& arena, std::uint64_t seed) {
  Rng rng(seed, "tier test", 0, 0);
  for (Bytes i = 0; i + 4 <= arena.bytes(); i += 4) {
    const float value = rng.uniform(-1.0F, 1.0F);
    std::memcpy(arena.at(i), &value, 4);
  }
}

std::span<std::byte> all(const Arena& arena) {
  return {arena.at(0), static_cast<std::size_t>(arena.bytes())};
}

bool equal(const Arena& a, const Arena& b) {
  return std::memcmp(a.at(0), b.at(0), static_cast<std::size_t>(a.bytes())) == 0;
}

// What is written at `offset` comes back; the bytes beside it stay.
void expect_round_trip(Tier& tier, Bytes offset, Bytes bytes) {
  Arena out(bytes);
  Arena in(bytes);
  Arena beside(4_KiB);
  Arena beside_back(4_KiB);
  fill(out, 1);
  fill(beside, 2);
  tier.write(offset - 4_KiB, all(beside));
  CopyControl control;
  tier.write(offset, all(out), control);
  EXPECT_EQ(control.total(), bytes);
  tier.read(offset, all(in));
  EXPECT_TRUE(equal(out, in));
  tier.read(offset - 4_KiB, all(beside_back));
  EXPECT_TRUE(equal(beside, beside_back));
}

template <typename Copy>
double seconds_of(Copy copy) {
  const auto start = Clock::now();
  copy();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Other work on the machine makes single copies late: one try of several must come close.
template <typename Copy>
void expect_seconds(double expected, Copy copy) {
  double closest = 1e9;
  for (int i = 0; i < 8 && std::abs(closest - expected) > 0.1 * expected; ++i) {
    const double seconds = seconds_of(copy);
    EXPECT_GE(seconds, 0.95 * expected) << "faster than the link";
    if (std::abs(seconds - expected) < std::abs(closest - expected)) closest = seconds;
  }
  EXPECT_NEAR(closest, expected, 0.1 * expected);
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResource);
    return error.what();
  }
  return "nothing was thrown";
}

fs::path folder() { return fs::current_path(); }

TEST(HostTier, KeepsWhatIsWritten) {
  HostTier tier({.bytes = 9_MiB});
  expect_round_trip(tier, 4_KiB, 5_MiB);
  expect_round_trip(tier, 2_MiB, 768);
}

TEST(HostTier, CopiesTakeAsLongAsTheLinkSays) {
  HostTier tier(
      {.bytes = 32_MiB,
       .link = {
           .out_bytes_per_second = 200e6, .in_bytes_per_second = 400e6, .latency_seconds = 0.005}});
  Arena block(16_MiB);
  fill(block, 1);
  const auto bytes = static_cast<double>(block.bytes());
  expect_seconds(0.005 + bytes / 200e6, [&] { tier.write(0, all(block)); });
  expect_seconds(0.005 + bytes / 400e6, [&] { tier.read(0, all(block)); });
  // Many small ones in a row: what single sleeps take too long does not add up.
  expect_seconds(20 * (0.005 + 4096 / 200e6), [&] {
    for (int i = 0; i < 20; ++i) tier.write(0, all(block).first(4096));
  });
}

TEST(HostTier, BothDirectionsRunAtTheSameTime) {
  HostTier tier(
      {.bytes = 32_MiB, .link = {.out_bytes_per_second = 100e6, .in_bytes_per_second = 100e6}});
  Arena a(12_MiB);
  Arena b(12_MiB);
  expect_seconds(static_cast<double>(12_MiB) / 100e6, [&] {
    std::thread other([&] { tier.read(16_MiB, all(b)); });
    tier.write(0, all(a));
    other.join();
  });
}

TEST(HostTier, IsRefusedWithSizesAndRemedies) {
  const std::string message =
      message_of([] { HostTier({.bytes = usable_memory(), .beside = 2_GiB}); });
  EXPECT_NE(message.find(format_bytes(usable_memory())), std::string::npos) << message;
  EXPECT_NE(message.find(format_bytes(2_GiB)), std::string::npos) << message;
  EXPECT_NE(message.find("smaller mini-batch"), std::string::npos) << message;
}

TEST(HostTier, ACopyThatIsGivenUpEnds) {
  HostTier tier(
      {.bytes = 1_MiB, .link = {.out_bytes_per_second = 1000, .in_bytes_per_second = 1000}});
  Arena block(1_MiB);
  CopyControl control;
  const double seconds = seconds_of([&] {
    std::thread other([&] { EXPECT_THROW(tier.write(0, all(block), control), Error); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    control.cancel();
    other.join();
  });
  EXPECT_LT(seconds, 10);
}

struct FileCase {
  bool io_uring;
  const char* folder;
};

class FileTierTest : public testing::TestWithParam<FileCase> {
 protected:
  FileTierOptions options(Bytes bytes) const {
    return {.folder = GetParam().folder, .bytes = bytes, .io_uring = GetParam().io_uring};
  }
  void SetUp() override {
    if (!fs::is_directory(GetParam().folder)) GTEST_SKIP() << "no " << GetParam().folder;
  }
};

TEST_P(FileTierTest, KeepsWhatIsWritten) {
  FileTier tier(options(100_MiB));
  if (!GetParam().io_uring) {
    EXPECT_FALSE(tier.uses_io_uring());
  }
  expect_round_trip(tier, 4_KiB, 4_KiB);
  expect_round_trip(tier, 1_MiB, 50_MiB + 12_KiB);  // more pieces than are under way at once
  expect_round_trip(tier, 40_MiB, FileTier::kPiece);
}

TEST_P(FileTierTest, BothDirectionsMayBeUsedAtOnce) {
  FileTier tier(options(64_MiB));
  Arena a(24_MiB);
  Arena b(24_MiB);
  Arena a_back(24_MiB);
  Arena b_back(24_MiB);
  fill(a, 1);
  fill(b, 2);
  tier.write(0, all(a));
  std::thread other([&] { tier.read(0, all(a_back)); });
  tier.write(32_MiB, all(b));
  other.join();
  tier.read(32_MiB, all(b_back));
  EXPECT_TRUE(equal(a, a_back));
  EXPECT_TRUE(equal(b, b_back));
}

TEST_P(FileTierTest, GoesOnAfterAShortWrite) {
  FileTierOptions with = options(64_MiB);
  with.faults.short_piece = 3;
  FileTier tier(with);
  expect_round_trip(tier, 4_KiB, 30_MiB);
}

TEST_P(FileTierTest, AWriteThatFailsNamesFolderPlaceAndReason) {
  for (const int error : {ENOSPC, EIO}) {
    FileTierOptions with = options(64_MiB);
    with.faults = {.error_piece = 2, .error = error};
    FileTier tier(with);
    Arena block(20_MiB);
    fill(block, 1);
    const std::string message = message_of([&] { tier.write(8_MiB, all(block)); });
    EXPECT_NE(message.find(GetParam().folder), std::string::npos) << message;
    EXPECT_NE(message.find(std::strerror(error)), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(12_MiB)), std::string::npos) << message;
    Arena back(20_MiB);
    tier.write(8_MiB, all(block));  // and works afterwards
    tier.read(8_MiB, all(back));
    EXPECT_TRUE(equal(block, back));
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, FileTierTest,
                         testing::Values(FileCase{true, "."}, FileCase{false, "."},
                                         FileCase{true, "/dev/shm"}, FileCase{false, "/dev/shm"}));

TEST(FileTier, LeavesNoNameInItsFolder) {
  const fs::path place = folder() / "tier_test_folder";
  fs::create_directory(place);
  {
    FileTier tier({.folder = place, .bytes = 1_MiB});
    EXPECT_TRUE(fs::is_empty(place));
    EXPECT_EQ(tier.bytes(), 1_MiB);
  }
  EXPECT_TRUE(fs::remove(place));
}

TEST(FileTier, TakesItsRoomAtOnce) {
  const Bytes before = static_cast<Bytes>(fs::space(folder()).available);
  FileTier tier({.folder = folder(), .bytes = 256_MiB});
  const Bytes after = static_cast<Bytes>(fs::space(folder()).available);
  EXPECT_NEAR(static_cast<double>(before - after), static_cast<double>(256_MiB),
              static_cast<double>(128_MiB));  // others write too
}

TEST(FileTier, IsRefusedWhenTheDiskIsTooSmall) {
  const auto asked = static_cast<Bytes>(fs::space(folder()).available) + 1_GiB;
  const std::string message = message_of([&] { FileTier({.folder = folder(), .bytes = asked}); });
  EXPECT_NE(message.find(folder().string()), std::string::npos) << message;
  EXPECT_NE(message.find(format_bytes(asked)), std::string::npos) << message;
  EXPECT_NE(message.find("are free"), std::string::npos) << message;
  const std::string nowhere =
      message_of([] { FileTier({.folder = "/no/such/folder", .bytes = 1_MiB}); });
  EXPECT_NE(nowhere.find("/no/such/folder"), std::string::npos) << nowhere;
}

TEST(FileTier, IsNotFasterThanItsLink) {
  FileTier tier({.folder = folder(),
                 .bytes = 16_MiB,
                 .link = {.out_bytes_per_second = 60e6, .in_bytes_per_second = 60e6}});
  Arena block(16_MiB);
  expect_seconds(static_cast<double>(16_MiB) / 60e6, [&] { tier.read(0, all(block)); });
}

TEST(BouncedTier, KeepsWhatIsWrittenAtTheSpeedOfItsLink) {
  const auto file =
      std::make_shared<FileTier>(FileTierOptions{.folder = folder(), .bytes = 48_MiB});
  BouncedTier tier({.out_bytes_per_second = 150e6, .in_bytes_per_second = 100e6}, file);
  expect_round_trip(tier, 4_KiB, 40_MiB);
  Arena block(20_MiB);
  expect_seconds(static_cast<double>(20_MiB) / 100e6, [&] { tier.read(0, all(block)); });
}

TEST(Measure, FindsTheLinkOfATier) {
  const LinkSpec link{
      .out_bytes_per_second = 300e6, .in_bytes_per_second = 500e6, .latency_seconds = 0.004};
  HostTier tier({.bytes = 96_MiB, .link = link});
  LinkSpec best;  // of several: other work on the machine slows copies down
  best.latency_seconds = 1;
  for (int i = 0; i < 4; ++i) {
    const LinkSpec measured = measure(tier, 96_MiB);
    best.out_bytes_per_second = std::max(best.out_bytes_per_second, measured.out_bytes_per_second);
    best.in_bytes_per_second = std::max(best.in_bytes_per_second, measured.in_bytes_per_second);
    best.latency_seconds = std::min(best.latency_seconds, measured.latency_seconds);
    if (best.out_bytes_per_second > 285e6 && best.in_bytes_per_second > 475e6) break;
  }
  EXPECT_NEAR(best.out_bytes_per_second, 300e6, 30e6);
  EXPECT_NEAR(best.in_bytes_per_second, 500e6, 50e6);
  EXPECT_NEAR(best.latency_seconds, 0.004, 0.001);
}

TEST(Measure, GivesALinkForDiskAndMemory) {
  FileTier file({.folder = folder(), .bytes = 16_MiB});
  HostTier host({.bytes = 16_MiB});
  for (const LinkSpec& link : {measure_disk(file), measure(host, 16_MiB)}) {
    EXPECT_TRUE(link.exists());
    EXPECT_GT(link.out_bytes_per_second, 1e6);
    EXPECT_LT(link.out_bytes_per_second, 1e12);
    EXPECT_GT(link.latency_seconds, 0);
  }
}

}  // namespace
}  // namespace lantern::device
