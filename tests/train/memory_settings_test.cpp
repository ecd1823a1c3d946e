#include "train/memory_settings.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "device/machine.hpp"
#include "layers/network.hpp"

namespace lantern::train {
namespace {

class Notices final : public Console {
 public:
  void line(std::string_view) override {}
  void notice(std::string_view text) override { texts.emplace_back(text); }
  void progress(std::string_view, std::int64_t, std::int64_t, double, std::string_view) override {}
  bool interrupted() const override { return false; }
  std::vector<std::string> texts;
};

layers::NetSpec net(const std::string& keys, std::string* errors = nullptr) {
  Diagnostics diagnostics;
  const layers::Network network = layers::load_network(
      "net.cfg",
      "[net]\nwidth=8\nheight=8\nchannels=3\nbatch=12\nsubdivisions=2\n" + keys +
          "\n[convolutional]\nfilters=1\nsize=1\nactivation=linear\n[cost]\n",
      diagnostics);
  for (const Diagnostics::Entry& entry : diagnostics.entries()) {
    if (errors != nullptr) *errors += entry.to_string() + "\n";
  }
  return network.net;
}

MemorySettings settings(const std::string& keys, const TrainSettings& flags = {}) {
  Notices notices;
  return memory_settings(net(keys), flags, notices);
}

std::string refusal(const std::string& keys, const TrainSettings& flags, ErrorCode code) {
  try {
    settings(keys, flags);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(MemorySettings, AreReadFromTheCfg) {
  const MemorySettings none = settings("");
  EXPECT_FALSE(none.memory.has_value());
  EXPECT_FALSE(none.max_slowdown.has_value());
  EXPECT_EQ(none.disk_memory, 0);
  EXPECT_EQ(none.mini_batch, 0);
  EXPECT_LT(none.process_bytes(), device::usable_memory()) << "a reserve for everybody else";
  const MemorySettings all =
      settings("memory=600M\ndisk_memory=/a:b:2G\nmax_slowdown=12.5%\nmini_batch=3");
  EXPECT_EQ(all.memory, 600 * (Bytes{1} << 20));
  EXPECT_EQ(all.process_bytes(), std::min(*all.memory, device::usable_memory()));
  EXPECT_EQ(all.disk_folder, "/a:b");
  EXPECT_EQ(all.disk_memory, Bytes{2} << 30);
  EXPECT_DOUBLE_EQ(all.max_slowdown.value_or(0), 0.125);
  EXPECT_EQ(all.mini_batch, 3);
  EXPECT_EQ(settings("mini_batch=auto").mini_batch, MemorySettings::kAutoMiniBatch);
  EXPECT_EQ(settings("memory=50%").memory, device::usable_memory() / 2);
}

TEST(MemorySettings, FlagsWin) {
  const MemorySettings all =
      settings("memory=600M\ndisk_memory=/a:2G\nmax_slowdown=1\nmini_batch=3",
               {.memory = "1G", .disk_memory = "/b:3M", .max_slowdown = "7", .mini_batch = "auto"});
  EXPECT_EQ(all.memory, Bytes{1} << 30);
  EXPECT_EQ(all.disk_folder, "/b");
  EXPECT_DOUBLE_EQ(all.max_slowdown.value_or(0), 0.07);
  EXPECT_EQ(all.mini_batch, MemorySettings::kAutoMiniBatch);
  EXPECT_FALSE(settings("memory=600M", {.memory = "auto"}).memory.has_value());
}

TEST(MemorySettings, WrongKeysAreNamedWithTheirLine) {
  for (const auto& [line, says] : std::vector<std::pair<std::string, std::string>>{
           {"memory=many", "memory is 'many', want auto, a size such as 6G"},
           {"memory=130%", "memory is '130%'"},
           {"host_memory=x", "host_memory is 'x'"},
           {"disk_memory=/scratch", "want FOLDER:SIZE"},
           {"max_slowdown=-3", "max_slowdown is -3, want >= 0"},
           {"mini_batch=-2", "mini_batch is -2"}}) {
    std::string errors;
    net(line, &errors);
    EXPECT_NE(errors.find("net.cfg:7"), std::string::npos) << line << errors;
    EXPECT_NE(errors.find(says), std::string::npos) << line << errors;
  }
  const std::string divides = refusal("mini_batch=5", {}, ErrorCode::kInvalidConfig);
  EXPECT_NE(divides.find("net.cfg:7"), std::string::npos) << divides;
  EXPECT_NE(divides.find("nearest that do: 4 and 6"), std::string::npos) << divides;
}

TEST(MemorySettings, WrongFlagsAreNamed) {
  constexpr ErrorCode kUsage = ErrorCode::kUsage;
  EXPECT_NE(refusal("", {.memory = "0"}, kUsage).find("-memory is '0'"), std::string::npos);
  EXPECT_NE(refusal("", {.memory = "101%"}, kUsage).find("share"), std::string::npos);
  EXPECT_NE(refusal("", {.disk_memory = "5G"}, kUsage).find("folder"), std::string::npos);
  EXPECT_NE(refusal("", {.max_slowdown = "x"}, kUsage).find("percentage"), std::string::npos);
  EXPECT_NE(refusal("", {.mini_batch = "5"}, kUsage).find("does not divide"), std::string::npos);
  EXPECT_NE(refusal("", {.mini_batch = "13"}, kUsage).find("1 to 12"), std::string::npos);
}

TEST(MemorySettings, HostMemoryIsRefusedWithTheReason) {
  const std::string key = refusal("host_memory=4G", {}, ErrorCode::kInvalidConfig);
  EXPECT_NE(key.find("net.cfg:7"), std::string::npos) << key;
  EXPECT_NE(key.find("RAM is the memory that memory= bounds"), std::string::npos) << key;
  refusal("", {.host_memory = "4G"}, ErrorCode::kUsage);
  settings("host_memory=auto");
  settings("host_memory=4G", {.host_memory = "auto"});
}

TEST(MemorySettings, DarknetsKeysAreMappedWithOneLineEach) {
  const auto notices = [](const std::string& keys) {
    Notices console;
    memory_settings(net(keys), {}, console);
    return console.texts;
  };
  EXPECT_TRUE(notices("").empty());
  for (const char* mode : {"1", "2", "3"}) {
    const auto texts = notices(std::string("optimized_memory=") + mode);
    ASSERT_EQ(texts.size(), 1U);
    EXPECT_NE(texts[0].find("memory=auto"), std::string::npos) << texts[0];
  }
  EXPECT_EQ(notices("optimized_memory=3\nworkspace_size_limit_MB=100").size(), 2U);
}

}  // namespace
}  // namespace lantern::train
