#include "cli/program.hpp"

namespace lantern::cli {
namespace {

constexpr const char* kCase = "39-no-display";

nlohmann::json planned(const WorkFolder& folder, const std::string& flags) {
  const Outcome outcome = folder.run("plan net.cfg --json " + flags);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return parse_json(outcome.out);
}

TEST(Plan, SaysWhatIsHeld) {
  const WorkFolder folder(kCase);
  const Outcome text = folder.run("plan net.cfg");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* word :
       {"parameters", "gradients of parameters", "momentum", "saved for backward", "scratch",
        "arena", "loader", "code and libraries", "limited by"}) {
    EXPECT_TRUE(text.prints(word)) << word;
  }
}

TEST(Plan, ARowForEachMiniBatchAndItGrows) {
  const WorkFolder folder(kCase);
  const nlohmann::json json =
      planned(folder, "--mini-batch 1,2,8 --device rtx2070 --memory 100M --largest");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["network"], "net.cfg");
  EXPECT_EQ(json["device"], "rtx2070");
  ASSERT_EQ(json["rows"].size(), 3U);
  std::int64_t bytes = 0;
  double seconds = 0;
  for (const auto& row : json["rows"]) {
    EXPECT_TRUE(row["feasible"].get<bool>());
    EXPECT_GT(row["device_bytes"].get<std::int64_t>(), bytes);
    EXPECT_GT(row["seconds_per_mini_batch"].get<double>(), seconds);
    EXPECT_NEAR(row["slowdown_percent"].get<double>(), 0, 1e-6);
    EXPECT_EQ(row["host_bytes"], 0);
    bytes = row["device_bytes"];
    seconds = row["seconds_per_mini_batch"];
  }
  EXPECT_EQ(json["rows"][2]["mini_batch"], 8);
  EXPECT_GT(json["largest_mini_batch"].get<int>(), 8);
  EXPECT_TRUE(planned(folder, "--device rtx2070")["largest_mini_batch"].is_null());
}

TEST(Plan, ASmallerMemoryEvictsAndCosts) {
  const WorkFolder folder(kCase);
  const auto all = planned(folder, "--device rtx2070 --mini-batch 64")["rows"][0];
  const auto bytes = all["device_bytes"].get<std::int64_t>();
  const auto memory = std::to_string(bytes * 9 / 10);
  const auto tight = planned(folder, "--device rtx2070 --mini-batch 64 --memory " + memory);
  const auto& row = tight["rows"][0];
  ASSERT_TRUE(row["feasible"].get<bool>());
  EXPECT_LE(row["device_bytes"].get<std::int64_t>(), bytes * 9 / 10);
  EXPECT_GE(row["seconds_per_mini_batch"].get<double>(),
            all["seconds_per_mini_batch"].get<double>());
  EXPECT_GE(row["slowdown_percent"].get<double>(), row["bound_percent"].get<double>() - 1e-6);
  EXPECT_TRUE(row["bytes_out"].get<double>() > 0 || row["recompute_seconds"].get<double>() > 0 ||
              row["chunks"].get<int>() > 1);
}

TEST(Plan, WhatDoesNotFitNamesTheSmallestMemory) {
  const WorkFolder folder(kCase);
  const auto json = planned(folder, "--device rtx2070 --mini-batch 16 --memory 64K");
  const auto& row = json["rows"][0];
  EXPECT_FALSE(row["feasible"].get<bool>());
  EXPECT_TRUE(row["device_bytes"].is_null());
  EXPECT_EQ(row["limited_by"], "memory");
  const auto smallest = row["smallest_memory_bytes"].get<std::int64_t>();
  EXPECT_GT(smallest, 64 * 1024);
  const std::string with = "--device rtx2070 --mini-batch 16 --memory ";
  EXPECT_TRUE(planned(folder, with + std::to_string(smallest))["rows"][0]["feasible"].get<bool>());
  EXPECT_TRUE(folder.run("plan net.cfg " + with + "64K").prints("does NOT fit"));
}

TEST(Plan, OnTheCpuTheMemoryIsThatOfTheProcess) {
  const WorkFolder folder(kCase);
  const auto json = planned(folder, "--mini-batch 4 --memory 1G");
  const auto& row = json["rows"][0];
  EXPECT_GT(row["process_bytes"].get<std::int64_t>(), row["device_bytes"].get<std::int64_t>());
  EXPECT_EQ(json["memory_bytes"], 1 << 30);
  EXPECT_EQ(folder.run("plan net.cfg --host-memory 1G").code, 2);
  const Outcome disk = folder.run("plan net.cfg --mini-batch 4 --disk-memory .:16M");
  EXPECT_EQ(disk.code, 0) << disk.err;
  EXPECT_TRUE(disk.prints("disk GiB"));
}

TEST(Plan, SizesMayBeParts) {
  const WorkFolder folder(kCase);
  const auto half = planned(folder, "--device rtx2070 --mini-batch 4 --memory 50%");
  EXPECT_EQ(half["memory_bytes"], 4LL << 30);
  for (const char* flags : {"--memory 0%", "--memory x", "--memory 101%", "--max-slowdown fast",
                            "--size 0x64", "--size 64x64x64", "--mini-batch 8,x",
                            "--disk-memory 8G", "--device rtx2070 --disk-memory /tmp:8G"}) {
    const Outcome outcome = folder.run(std::string("plan net.cfg ") + flags);
    EXPECT_EQ(outcome.code, 2) << flags << outcome.err;
    EXPECT_EQ(outcome.out, "") << flags;
  }
}

TEST(Plan, CountsTheLargestRandomSizeUnlessOneIsGiven) {
  const WorkFolder folder(kCase);
  std::string cfg = slurp(folder / "net.cfg");
  const std::string flags = "--device rtx2070 --mini-batch 4";
  const auto device_bytes = [&](const std::string& more) {
    return planned(folder, flags + more)["rows"][0]["device_bytes"].get<std::int64_t>();
  };
  const std::int64_t fixed = device_bytes("");
  const std::size_t key = cfg.find("random=");
  ASSERT_NE(key, std::string::npos);
  cfg.replace(key, cfg.find('\n', key) - key, "random=1");
  put(folder / "net.cfg", cfg);
  EXPECT_TRUE(folder.run("plan net.cfg " + flags).prints("planned for the largest, "));
  EXPECT_GT(device_bytes(""), fixed * 3 / 2);
  EXPECT_EQ(device_bytes(" --size 64x64"), fixed);
}

TEST(Plan, ADeviceFileStandsForItsDevice) {
  const WorkFolder folder(kCase);
  EXPECT_EQ(folder.run("plan --device rtx2070 --write-device my.device").code, 0);
  EXPECT_NE(slurp(folder / "my.device").find("name = rtx2070"), std::string::npos);
  const std::string flags = " --mini-batch 4,16";
  const auto preset = planned(folder, "--device rtx2070" + flags);
  EXPECT_EQ(planned(folder, "--device my.device" + flags)["rows"], preset["rows"]);
  put(folder / "my.device", "memory = lots\n");
  const Outcome bad = folder.run("plan net.cfg --device my.device");
  EXPECT_EQ(bad.code, 3);
  EXPECT_TRUE(bad.says("memory is 'lots'")) << bad.err;
  EXPECT_EQ(folder.run("plan --write-device cpu.device").code, 0);
  EXPECT_NE(slurp(folder / "cpu.device").find("name = cpu"), std::string::npos);
}

TEST(Plan, WritesAPageWithoutOtherFiles) {
  const WorkFolder folder(kCase);
  EXPECT_EQ(folder.run("plan net.cfg --device rtx2070 --mini-batch 4,8 --html=p.html").code, 0);
  const std::string page = slurp(folder / "p.html");
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("href="), std::string::npos);
  const std::size_t from = page.find("const plan=") + 11;
  const std::size_t to = page.find(";\nconst $", from);
  ASSERT_NE(to, std::string::npos);
  const nlohmann::json data = parse_json(page.substr(from, to - from));
  ASSERT_EQ(data["rows"].size(), 2U);
  for (const auto& row : data["rows"]) {
    EXPECT_GT(row["moments"].size(), 10U);
    EXPECT_GT(row["streams"]["compute"].size(), 10U);
    EXPECT_LE(row["streams"]["compute"].back()[1].get<double>(),
              row["seconds"].get<double>() * (1 + 1e-5));
  }
}

}  // namespace
}  // namespace lantern::cli
