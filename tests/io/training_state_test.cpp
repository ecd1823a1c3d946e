#include "io/training_state.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace lantern::io {
namespace {

namespace fs = std::filesystem;

class TrainingStateFile : public ::testing::Test {
 protected:
  TrainingStateFile() : path_(fs::temp_directory_path() / fmt::format("state_{}", getpid())) {}
  ~TrainingStateFile() override { fs::remove(path_); }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  void write() const {
    write_state(path_, state(), [&](std::size_t i) { return std::span<const float>(values_[i]); });
  }
  static TrainingState state() {
    return {.iteration = 123456789012,
            .batch = 64,
            .seed = 18446744073709551615ULL,
            .threads = 3,
            .cfg_hash = text_hash("[net]\n"),
            .average_loss = 0.1,
            .rate_factor = 0.25,
            .skipped_in_a_row = 2,
            .averages = true,
            .best = 1.0 / 3,
            .last_evaluation = 100,
            .arrays = {{"L0.weights", 3}, {"L0.weights.momentum", 0}, {"L1 \"é\"", 2}}};
  }

  fs::path path_;
  std::vector<std::vector<float>> values_{{1.5F, -0.0F, 1e-40F}, {}, {3e38F, -1.0F}};
};

TEST_F(TrainingStateFile, ComesBackAsItWas) {
  write();
  const TrainingState back = read_state(path_);
  EXPECT_EQ(back.iteration, state().iteration);
  EXPECT_EQ(back.batch, 64);
  EXPECT_EQ(back.seed, state().seed);
  EXPECT_EQ(back.threads, 3);
  EXPECT_EQ(back.cfg_hash, state().cfg_hash);
  EXPECT_EQ(back.average_loss, 0.1);
  EXPECT_EQ(back.rate_factor, 0.25);
  EXPECT_EQ(back.skipped_in_a_row, 2);
  EXPECT_TRUE(back.averages);
  EXPECT_EQ(back.best, 1.0 / 3);
  EXPECT_EQ(back.last_evaluation, 100);
  EXPECT_EQ(back.arrays, state().arrays);
  std::vector<std::vector<float>> values(3);
  read_state_values(path_, back, [&](std::size_t i, std::span<const float> array) {
    values[i].assign(array.begin(), array.end());
  });
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(values[i].size(), values_[i].size());
    for (std::size_t k = 0; k < values[i].size(); ++k)
      EXPECT_EQ(std::signbit(values[i][k]), std::signbit(values_[i][k]));
    EXPECT_EQ(values[i], values_[i]);
  }
}

TEST_F(TrainingStateFile, EveryChangedByteIsNoticed) {
  write();
  const std::string whole = bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    put(damaged);
    EXPECT_THROW(read_state(path_), Error) << "byte " << i;
  }
}

TEST_F(TrainingStateFile, EveryOtherLengthIsNoticed) {
  write();
  const std::string whole = bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(whole.substr(0, length));
    EXPECT_THROW(read_state(path_), Error) << length;
  }
  put(whole + '\0');
  EXPECT_THROW(read_state(path_), Error);
}

// A header may promise anything: nothing is allocated for what the file does not hold.
TEST_F(TrainingStateFile, HugePromisesAreRefused) {
  const auto with_header = [&](const std::string& header) {
    std::string bytes = "LNTNSTAT";
    const std::uint64_t numbers[2] = {1, header.size()};
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
    put(bytes + header + std::string(8, '\0'));
    EXPECT_THROW(read_state(path_), Error) << header;
  };
  write();
  const std::string whole = bytes();
  const std::size_t begin = whole.find('{');
  const std::string header = whole.substr(begin, whole.rfind('}') - begin + 1);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = header;
    EXPECT_NE(changed.find(from), std::string::npos) << from;
    return changed.replace(changed.find(from), from.size(), to);
  };
  with_header(replaced("\"L0.weights\",3", "\"L0.weights\",9223372036854775807"));
  with_header(replaced("\"L0.weights\",3", "\"L0.weights\",-1"));
  with_header(replaced("\"L0.weights\",3", "\"L0.weights\",4611686018427387904"));
  with_header(replaced("\"batch\":64", "\"batch\":0"));
  with_header(replaced("\"batch\":64", "\"batch\":\"x\""));
  with_header("");
  with_header("[]");
  with_header(std::string(100000, '['));
  Rng rng(1, "random headers");
  for (int n = 0; n < 300; ++n) {
    std::string damaged = header;
    for (int k = 0; k < 3; ++k)
      damaged[static_cast<std::size_t>(
          rng.uniform_int(0, static_cast<std::int64_t>(header.size()) - 1))] =
          static_cast<char>(rng.uniform_int(1, 255));
    with_header(damaged);
  }
}

TEST_F(TrainingStateFile, HashesDiffer) {
  EXPECT_NE(text_hash("a"), text_hash("b"));
  EXPECT_NE(text_hash("abcdefgh"), text_hash("abcdefghi"));
  EXPECT_EQ(text_hash("abcdefghi").size(), 16U);
}

}  // namespace
}  // namespace lantern::io
