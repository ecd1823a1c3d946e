// The statuses of sections and keys: whole, without strangers, and true where they say "refused".
#include "layers/compatibility.hpp"

#include <gtest/gtest.h>

#include <map>

#include "layers/lower.hpp"
#include "support.hpp"

namespace lantern::layers {
namespace {

using testing::load;
using testing::Loaded;

std::vector<cfg::SectionInfo> all_sections() {
  std::vector<cfg::SectionInfo> sections = section_reference();
  sections.push_back(common_reference());
  return sections;
}

TEST(Compatibility, EverySectionAndKeyHasOneStatus) {
  std::map<std::string, int> rows;  // "net.batch"; "net." for the section
  for (const KeyStatus& status : key_statuses()) {
    if (status.keys.empty()) ++rows[fmt::format("{}.", status.section)];
    for (const std::string_view key : status.names())
      ++rows[fmt::format("{}.{}", status.section, key)];
  }
  std::size_t known = 0;
  const auto check = [&](std::string_view section, std::string_view key) {
    const std::string name = fmt::format("{}.{}", section, key);
    EXPECT_EQ(rows[name], 1) << name << ": give it one row in layers/compatibility.cpp";
    EXPECT_NE(find_status(section, key), nullptr) << name;
    ++known;
  };
  for (const cfg::SectionInfo& section : all_sections()) {
    check(section.name, {});
    for (const cfg::KeyInfo& key : section.keys) check(section.name, key.name);
  }
  EXPECT_EQ(rows.size(), known) << "a row names what no key table has";
  EXPECT_EQ(find_status("net", "nosuch"), nullptr);
  EXPECT_EQ(find_status("nosuch", {}), nullptr);
}

TEST(Compatibility, WhatIsNotAsInDarknetHasAReason) {
  for (const KeyStatus& status : key_statuses()) {
    const std::string name = fmt::format("[{}] {}", status.section, status.keys);
    if (status.effect != Effect::kAsDarknet) {
      EXPECT_FALSE(status.reason.empty()) << name;
    }
    EXPECT_EQ(status.reason.find('|'), std::string_view::npos) << name;
    if (status.effect == Effect::kRefused) {
      EXPECT_FALSE(status.refused.empty()) << name;
    }
    if (!status.refused.empty()) {
      EXPECT_EQ(status.names().size(), 1U) << name;
    }
  }
}

// A network in which the key, put in place of '%', is all that can be refused.
const std::map<std::string_view, std::string> kNetworks{
    {"net",
     "[net]\nwidth=8\nheight=8\nchannels=3\n%\n[convolutional]\nfilters=4\nsize=1\n[cost]\n"},
    {"convolutional",
     "[net]\nwidth=8\nheight=8\nchannels=3\n[convolutional]\nfilters=4\nsize=1\n%\n[cost]\n"},
    {"crnn",
     "[net]\nwidth=8\nheight=8\nchannels=3\n[crnn]\nhidden=4\noutput=4\npad=1\n%\n[cost]\n"},
    {"conv_lstm",
     "[net]\nwidth=8\nheight=8\nchannels=4\n[conv_lstm]\noutput=4\npad=1\n%\n[cost]\n"},
    {"Gaussian_yolo",
     "[net]\nwidth=8\nheight=8\nchannels=3\n[convolutional]\nfilters=10\nsize=1\n"
     "activation=linear\n[Gaussian_yolo]\nclasses=1\nanchors=4,4\n%\n"},
    {"detection",
     "[net]\nwidth=8\nheight=8\nchannels=3\n[connected]\noutput=@\nactivation=linear\n"
     "[detection]\nside=1\nnum=1\nclasses=1\n%\n"},
};

// `allowed`: a network without the key.
std::string network_with(const KeyStatus& status, bool allowed) {
  std::string text = kNetworks.at(status.section);
  const auto replace = [&](char mark, const std::string& by) {
    if (const std::size_t at = text.find(mark); at != std::string::npos) text.replace(at, 1, by);
  };
  const bool is_coords = status.keys == "coords";
  replace('@', is_coords && !allowed ? "7" : "6");  // 1 + coords + classes
  replace('%', !allowed    ? fmt::format("{}={}", status.keys, status.refused)
               : is_coords ? "coords=4"
                           : std::string());
  return text;
}

std::string refusal_in_training(const std::string& text) {
  const Loaded loaded = load(text);
  EXPECT_TRUE(loaded.ok()) << loaded.messages() << text;
  if (!loaded.ok()) return {};
  try {
    lower(loaded.network, {.training = true, .mini_batch = 1, .forward_batch = 0});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.message();
  }
  return {};
}

TEST(Compatibility, RefusedKeysOfLayersAreRefusedByName) {
  int tried = 0;
  for (const KeyStatus& status : key_statuses()) {
    if (status.refused.empty() || status.section == "net") continue;
    SCOPED_TRACE(fmt::format("[{}] {}={}", status.section, status.keys, status.refused));
    ASSERT_TRUE(kNetworks.contains(status.section)) << "give it a network";
    EXPECT_EQ(refusal_in_training(network_with(status, true)), "");
    const std::string message = refusal_in_training(network_with(status, false));
    EXPECT_NE(message.find(status.keys), std::string::npos) << message;
    ++tried;
  }
  EXPECT_GE(tried, 8);
}

TEST(Compatibility, RefusalsOfNetGiveTheReasonOfTheTable) {
  const KeyStatus& status = *find_status("net", "freeze_bn");
  const std::string message = refusal_in_training(network_with(status, false));
  EXPECT_NE(message.find("[net] freeze_bn is not supported: "), std::string::npos) << message;
  EXPECT_NE(message.find(status.reason), std::string::npos) << message;
  const std::string winograd =
      refusal_in_training(network_with(*find_status("net", "conv_algorithm"), false));
  EXPECT_NE(winograd.find("[net] conv_algorithm=winograd is not"), std::string::npos) << winograd;
}

}  // namespace
}  // namespace lantern::layers
