#include "io/weights.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/rng.hpp"

namespace lantern::io {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_PRED2(contains, std::string(text), std::string(part))

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class WeightsTest : public ::testing::Test {
 protected:
  WeightsTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              fmt::format("lantern_weights_{}_{}", info->name(), getpid());
    std::filesystem::create_directories(folder_);
  }
  ~WeightsTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(std::string_view bytes,
                              const std::string& name = "net.weights") const {
    // Not write_file_atomically: thousands of fsync take longer than the tests.
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

WeightsLayer convolution(int layer, std::int64_t filters, std::int64_t weights, bool normalised) {
  WeightsLayer result{.layer = layer, .section = "convolutional"};
  result.arrays.push_back({std::string(kBiases), filters});
  if (normalised) {
    result.arrays.push_back({std::string(kScales), filters});
    result.arrays.push_back({std::string(kRollingMean), filters});
    result.arrays.push_back({std::string(kRollingVariance), filters});
  }
  result.arrays.push_back({std::string(kWeights), filters * weights, filters});
  return result;
}

WeightsLayer connected(int layer, std::int64_t outputs, std::int64_t inputs) {
  return {.layer = layer,
          .section = "connected",
          .arrays = {{std::string(kBiases), outputs},
                     {std::string(kWeights), outputs * inputs, outputs, true}}};
}

/// The network of tests/data/io: 3 convolutions of a 64x64 detector.
WeightsLayout small_layout() {
  return {convolution(0, 8, 3 * 9, true), convolution(2, 16, 8 * 9, true),
          convolution(3, 21, 16, false)};
}

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(LANTERN_TEST_DATA) / "io" / name;
}

std::string message_of(const std::filesystem::path& path, const WeightsLayout& layout,
                       Purpose purpose) {
  Diagnostics warnings;
  try {
    read_weights(path, layout, purpose, warnings);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
    return error.what();
  }
  return "";
}

std::string bytes_of(const WeightsHeader& header, const std::vector<float>& values) {
  std::string bytes(static_cast<std::size_t>(header.size()), '\0');
  std::memcpy(bytes.data(), &header.major, 4);
  std::memcpy(bytes.data() + 4, &header.minor, 4);
  std::memcpy(bytes.data() + 8, &header.revision, 4);
  std::memcpy(bytes.data() + 12, &header.seen, static_cast<std::size_t>(header.size() - 12));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return bytes;
}

TEST_F(WeightsTest, LoadsACompleteFile) {
  Diagnostics warnings;
  const Weights weights =
      read_weights(data("full.weights"), small_layout(), Purpose::kEvaluation, warnings);
  EXPECT_TRUE(warnings.entries().empty());
  EXPECT_TRUE(weights.is_complete());
  EXPECT_EQ(weights.layers_loaded, 3);
  EXPECT_EQ(weights.header, (WeightsHeader{.major = 0, .minor = 2, .revision = 0, .seen = 0}));
  EXPECT_EQ(weights.values[2][1].size(), 336U);
  EXPECT_EQ(weights_file_size(weights.header, small_layout()), 7304);
}

TEST_F(WeightsTest, HandsOnOneLayerAfterTheOther) {
  for (const char* name : {"full.weights", "edge.weights"}) {
    Diagnostics warnings;
    const Weights whole = read_weights(data(name), small_layout(), Purpose::kTraining, warnings);
    std::size_t next = 0;
    const Weights handed =
        read_weights(data(name), small_layout(), Purpose::kTraining, warnings,
                     [&](std::size_t i, std::vector<std::vector<float>>& values) {
                       ASSERT_EQ(i, next++);
                       EXPECT_EQ(values, whole.values[i]) << name << ", entry " << i;
                     });
    EXPECT_EQ(next, small_layout().size());
    EXPECT_TRUE(handed.values.empty());
    EXPECT_EQ(handed.layers_loaded, whole.layers_loaded);
  }
}

TEST_F(WeightsTest, RefusesAFileCutInsideALayerWithSizesAndLayer) {
  for (const Purpose purpose : {Purpose::kTraining, Purpose::kEvaluation}) {
    const std::string cut = message_of(data("cut.weights"), small_layout(), purpose);
    EXPECT_CONTAINS(cut, "is 7204 bytes, 7304 bytes are needed");
    EXPECT_CONTAINS(cut, "inside layer 3 ([convolutional]), array weights");
    const std::string head = message_of(data("head.weights"), small_layout(), purpose);
    EXPECT_CONTAINS(head, "is 10 bytes, 7304 bytes are needed");
    EXPECT_CONTAINS(head, "inside the header");
  }
}

TEST_F(WeightsTest, AcceptsACutBetweenLayersOnlyForTraining) {
  Diagnostics warnings;
  const Weights weights =
      read_weights(data("edge.weights"), small_layout(), Purpose::kTraining, warnings);
  ASSERT_EQ(warnings.entries().size(), 1U);
  EXPECT_CONTAINS(warnings.entries()[0].message, "1 of 3 layers with weights loaded");
  EXPECT_EQ(weights.layers_loaded, 1);
  EXPECT_EQ(weights.layers_expected, 3);
  EXPECT_FALSE(weights.values[0][4].empty());
  EXPECT_TRUE(weights.values[1][0].empty());
  const std::string text = message_of(data("edge.weights"), small_layout(), Purpose::kEvaluation);
  EXPECT_CONTAINS(text, "after layer 0 ([convolutional]), 1 of 3 layers with weights");
}

TEST_F(WeightsTest, RefusesAFileThatHoldsNoLayer) {
  const auto path = write(bytes_of({}, {}));
  EXPECT_CONTAINS(message_of(path, small_layout(), Purpose::kTraining), "no layer has weights");
}

TEST_F(WeightsTest, WarnsOfTrailingBytesInTrainingAndRefusesThemElsewhere) {
  const auto path = write(read_file(data("full.weights")) + "12345678");
  Diagnostics warnings;
  EXPECT_TRUE(read_weights(path, small_layout(), Purpose::kTraining, warnings).is_complete());
  ASSERT_EQ(warnings.entries().size(), 1U);
  EXPECT_CONTAINS(warnings.entries()[0].message, "8 bytes follow the last layer");
  EXPECT_CONTAINS(message_of(path, small_layout(), Purpose::kEvaluation),
                  "is 7312 bytes, 7304 bytes are needed");
}

TEST_F(WeightsTest, RoundTripGivesTheSameBytesInEveryHeaderVersion) {
  const WeightsLayout layout{convolution(0, 2, 3, true), connected(1, 2, 3)};
  std::vector<float> values(14 + 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5F + static_cast<float>(i);
  const std::vector<WeightsHeader> headers{
      {0, 0, 0, 7},          {0, 1, 0, 64000}, {0, 2, 0, 5'000'000'000}, {0, 2, 5, 32013312},
      {1, 0, 0, 1ULL << 40}, {1000, 2, 0, 9},  {0, 1001, 0, 4294967295}};
  for (const WeightsHeader& header : headers) {
    const std::string bytes = bytes_of(header, values);
    const auto path = write(bytes);
    EXPECT_EQ(read_weights_header(path), header);
    Diagnostics warnings;
    const Weights weights = read_weights(path, layout, Purpose::kEvaluation, warnings);
    EXPECT_EQ(weights.header, header);
    const bool is_wide = header.major == 1 || (header.major == 0 && header.minor == 2);
    EXPECT_EQ(header.size(), is_wide ? 20 : 16);
    // A transposed file keeps its connected matrix as inputs x outputs: 16 18 20 / 17 19 21 in
    // memory.
    EXPECT_EQ(weights.values[1][1][1], header.minor == 1001 ? values[18] : values[17]);
    const auto copy = folder_ / "copy.weights";
    write_weights(copy, weights.header, layout, views_of(weights.values));
    EXPECT_EQ(read_file(copy), bytes);
  }
}

TEST_F(WeightsTest, WritesAnOldCountOnlyWhereItFits) {
  const WeightsLayout layout{convolution(0, 1, 1, false)};
  const WeightsValues values{{{1.0F}, {2.0F}}};
  EXPECT_THROW(write_weights(folder_ / "a", {0, 1, 0, 1ULL << 32}, layout, views_of(values)),
               Error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
}

TEST_F(WeightsTest, PartialFilesHoldTheLayersBelowTheLimit) {
  Diagnostics warnings;
  const WeightsLayout layout = small_layout();
  const Weights weights =
      read_weights(data("full.weights"), layout, Purpose::kTraining, warnings, 2);
  EXPECT_TRUE(warnings.entries().empty());
  EXPECT_EQ(weights.layers_loaded, 1);
  EXPECT_TRUE(weights.is_complete());
  write_weights(folder_ / "part", weights.header, layout, views_of(weights.values), 2);
  EXPECT_EQ(read_file(folder_ / "part"), read_file(data("edge.weights")));
}

TEST_F(WeightsTest, HonoursDontloadDontloadscalesAndFlipped) {
  WeightsLayout layout{convolution(0, 2, 1, true), convolution(1, 2, 3, true),
                       convolution(2, 1, 1, false)};
  layout[0].dontload = true;
  layout[1].dontloadscales = true;
  layout[1].flipped = true;
  const auto path = write(bytes_of({}, {1, 2, 10, 11, 12, 13, 14, 15, 3, 4}));
  Diagnostics warnings;
  const Weights weights = read_weights(path, layout, Purpose::kEvaluation, warnings);
  EXPECT_EQ(weights.layers_expected, 2);
  EXPECT_TRUE(weights.values[0][0].empty());
  EXPECT_TRUE(weights.values[1][1].empty());
  // Stored 3 x 2: (10 11) (12 13) (14 15).
  EXPECT_EQ(weights.values[1][4], (std::vector<float>{10, 12, 14, 11, 13, 15}));
  EXPECT_EQ(weights.values[2][0], (std::vector<float>{3}));
}

TEST_F(WeightsTest, RefusesValuesThatAreNotFiniteForEvaluation) {
  const WeightsLayout layout{convolution(4, 1, 2, false)};
  const auto path = write(bytes_of({}, {1, 2, NAN}));
  EXPECT_CONTAINS(message_of(path, layout, Purpose::kEvaluation),
                  "layer 4 ([convolutional]), array weights: value 1 of 2 is nan");
  Diagnostics warnings;
  read_weights(path, layout, Purpose::kTraining, warnings);
  EXPECT_EQ(warnings.entries().size(), 1U);
}

TEST_F(WeightsTest, NamesWhatIsNoWeightsFile) {
  const WeightsLayout layout = small_layout();
  const std::vector<std::pair<std::string, std::string>> files{
      {"\xFF\xD8\xFF\xE0 and the rest of a picture", "a JPEG picture"},
      {std::string("\x89PNG\r\n\x1A\n", 8) + std::string(40, '\0'), "a PNG picture"},
      {"[net]\nbatch=1\nwidth=64\n", "a text file"},
      {"<html>", "a text file"},
      {"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"},
      {std::string("PK\x03\x04", 4) + std::string(40, '\1'), "a ZIP archive"},
      {std::string(40, '\xFE'), "is not a Darknet .weights file"}};
  for (const auto& [bytes, want] : files) {
    EXPECT_CONTAINS(message_of(write(bytes), layout, Purpose::kTraining), want);
  }
  EXPECT_CONTAINS(message_of(write(""), layout, Purpose::kTraining), "is 0 bytes");
  EXPECT_CONTAINS(message_of(folder_, layout, Purpose::kTraining), "is a folder");
  EXPECT_CONTAINS(message_of(folder_ / "none", layout, Purpose::kTraining), "Couldn't open file");
}

TEST_F(WeightsTest, EveryCutIsEitherWholeLayersOrAnError) {
  const WeightsLayout layout{convolution(0, 2, 3, true), connected(1, 2, 3),
                             convolution(2, 1, 2, false)};
  std::vector<float> values(14 + 8 + 3, 1.0F);
  const std::string bytes = bytes_of({}, values);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto path = write(bytes.substr(0, size));
    Diagnostics warnings;
    const bool is_edge = size == 20 + 14 * 4 || size == 20 + 22 * 4 || size == bytes.size();
    try {
      const Weights weights = read_weights(path, layout, Purpose::kTraining, warnings);
      EXPECT_TRUE(is_edge) << size;
      EXPECT_EQ(weights.is_complete(), size == bytes.size()) << size;
    } catch (const Error& error) {
      EXPECT_FALSE(is_edge) << size;
      EXPECT_CONTAINS(error.what(), fmt::format("{} bytes", size));
    }
  }
}

TEST_F(WeightsTest, AHugeLayoutIsAnErrorBeforeAnyAllocation) {
  WeightsLayout layout{convolution(0, 1, 1, false)};
  for (int i = 1; i < 4; ++i) {
    layout.push_back({.layer = i, .section = "local", .arrays = {{"weights", 1LL << 62}}});
  }
  const auto path = write(bytes_of({}, {1, 2, 3}));
  EXPECT_CONTAINS(message_of(path, layout, Purpose::kTraining), "inside layer 1 ([local])");
}

TEST_F(WeightsTest, SurvivesRandomHeadersAndBodies) {
  const WeightsLayout layout{convolution(0, 2, 3, true), connected(1, 2, 3)};
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    Rng rng(20240611, "weights fuzz", 0, seed);
    std::string bytes = bytes_of({}, std::vector<float>(22, 1.0F));
    const auto flips = rng.uniform_int(1, 6);
    for (std::int64_t i = 0; i < flips; ++i) {
      // Mostly in the header, where the decisions are.
      const auto last = rng.coin() ? 19 : static_cast<std::int64_t>(bytes.size()) - 1;
      bytes[static_cast<std::size_t>(rng.uniform_int(0, last))] = static_cast<char>(rng.next_u32());
    }
    bytes.resize(
        static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(bytes.size()) + 8)));
    const auto path = write(bytes);
    Diagnostics warnings;
    try {
      const Weights weights = read_weights(path, layout, Purpose::kTraining, warnings);
      ASSERT_LE(weights.layers_loaded, 2) << "seed " << seed;
      if (!weights.is_complete()) continue;
      write_weights(folder_ / "copy", weights.header, layout, views_of(weights.values));
      const std::string copy = read_file(folder_ / "copy");
      ASSERT_EQ(copy, bytes.substr(0, copy.size())) << "seed " << seed;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInvalidData) << "seed " << seed << error.what();
    }
  }
}

TEST_F(WeightsTest, RoundTripOfPublishedFiles) {
  const std::filesystem::path shared =
      std::filesystem::path(LANTERN_SOURCE_DIR) / "../shared/weights";
  if (!std::filesystem::is_directory(shared)) GTEST_SKIP() << "no published weights here";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared)) {
    if (entry.path().extension() != ".weights") continue;
    const Bytes size = static_cast<Bytes>(entry.file_size());
    const WeightsLayout layout{convolution(0, 1, (size - 20) / 4 - 1, false)};
    Diagnostics warnings;
    const Weights weights = read_weights(entry.path(), layout, Purpose::kEvaluation, warnings);
    write_weights(folder_ / "copy", weights.header, layout, views_of(weights.values));
    EXPECT_EQ(read_file(folder_ / "copy"), read_file(entry.path())) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace lantern::io
