// No input may crash the parser or the shape rules; what loads must have sane shapes.
#include <gtest/gtest.h>

#include <random>

#include "support.hpp"

namespace lantern::layers {
namespace {

using Engine = std::mt19937;

std::size_t below(Engine& engine, std::size_t n) {
  return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine);
}

void check(const std::string& text, unsigned seed) {
  const auto loaded = testing::load(text);
  for (const auto& entry : loaded.diagnostics.entries()) {
    ASSERT_TRUE(entry.where.starts_with("net.cfg:"))
        << "seed " << seed << ": " << entry.to_string();
  }
  if (!loaded.ok()) return;
  std::int64_t parameters = 0;
  for (const Layer& layer : loaded.network.layers) {
    ASSERT_TRUE(layer.out.w > 0 && layer.out.h > 0 && layer.out.c > 0) << "seed " << seed << "\n"
                                                                       << text;
    for (const int source : layer.sources)
      ASSERT_TRUE(source >= 0 && source < layer.index) << "seed " << seed;
    for (const ParameterArray& array : parameter_arrays(layer)) {
      ASSERT_GE(array.count, 0) << "seed " << seed << "\n" << text;
      parameters += array.count;
    }
  }
  ASSERT_EQ(parameters, loaded.network.parameters());
  ASSERT_FALSE(layer_table(loaded.network).empty());
}

TEST(CfgFuzz, RandomBytes) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Engine engine(seed);
    std::string text = seed % 2 == 0 ? "" : "[net]\nwidth=32\nheight=32\nchannels=3\n";
    constexpr std::string_view kCommon = "[]=#;,.-+0123456789 \n\r\te";
    for (std::size_t i = below(engine, 400); i > 0; --i) {
      text += below(engine, 2) == 0 ? kCommon[below(engine, kCommon.size())]
                                    : static_cast<char>(below(engine, 256));
    }
    check(text, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(CfgFuzz, DamagedStockNetworks) {
  const std::string stock = read_file(testing::data_dir() / "yolov3-tiny.cfg");
  for (unsigned seed = 0; seed < 600; ++seed) {
    Engine engine(seed);
    std::string text = stock;
    for (std::size_t i = 1 + below(engine, 6); i > 0 && !text.empty(); --i) {
      const std::size_t at = below(engine, text.size());
      switch (below(engine, 3)) {
        case 0:
          text[at] = static_cast<char>(below(engine, 256));
          break;
        case 1:
          text.erase(at, 1 + below(engine, 40));
          break;
        default:
          text.insert(
              at, std::string(1 + below(engine, 8), static_cast<char>('0' + below(engine, 10))));
      }
    }
    check(text, seed);
    if (HasFatalFailure()) return;
  }
}

// The key tables as dictionary: valid sections and keys with wild values.
TEST(CfgFuzz, RandomValuesForEveryKey) {
  const auto sections = section_reference();
  constexpr std::string_view kValues[] = {
      "0",     "1",       "-1",         "2",           "3",     "5",       "8",
      "1024",  "1048576", "2147483647", "-2147483648", "1e30",  "nan",     "-9",
      "0,1,2", "1,,2",    "-1,-2",      "auto",        "leaky", "softmax", ""};
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Engine engine(seed);
    std::string text = "[net]\nwidth=32\nheight=24\nchannels=4\n";
    for (std::size_t n = 1 + below(engine, 8); n > 0; --n) {
      const cfg::SectionInfo& section = sections[1 + below(engine, sections.size() - 1)];
      text += fmt::format("[{}]\n", section.name);
      for (const cfg::KeyInfo& key : section.keys) {
        if (key.required) {
          text += fmt::format("{}=-{}\n", key.name, 1 + below(engine, 2));
        } else if (below(engine, 4) == 0) {
          const auto& words = key.words;
          text += fmt::format("{}={}\n", key.name,
                              !words.empty() && below(engine, 2) == 0
                                  ? words[below(engine, words.size())]
                                  : kValues[below(engine, std::size(kValues))]);
        }
      }
    }
    check(text, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace lantern::layers
