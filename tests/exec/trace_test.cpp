#include "exec/trace.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "device/host_tier.hpp"
#include "exec/evicting_program.hpp"

namespace lantern::test {
namespace {

using exec::Executor;
using exec::Trace;
using exec::TraceEvent;
using graph::ProgramKind;
using nlohmann::json;

constexpr int kLayers = 6;

exec::ExecutorOptions traced(const Chain& chain, std::size_t events) {
  return {.host = std::make_shared<device::HostTier>(
              device::HostTierOptions{.bytes = chain.program().host_bytes}),
          .trace = std::make_shared<Trace>(events)};
}

TEST(Trace, HoldsEveryRunAndCopyInOrder) {
  const Chain chain{.layers = kLayers};
  const exec::ExecutorOptions options = traced(chain, 1000);
  Executor executor(chain.selection(), chain.program(), options);
  chain.run(executor, 2);
  const std::filesystem::path path = "trace_test.json";
  options.trace->write(path);
  const json events = json::parse(std::ifstream(path)).at("traceEvents");
  std::filesystem::remove(path);

  std::map<std::string, int> names;
  std::map<int, double> end_of_track;
  std::map<int, int> copies_of_track;
  Bytes live_peak = 0;
  for (const json& event : events) {
    const std::string kind = event.at("ph");
    if (kind == "M") continue;
    if (kind == "C") {
      live_peak = std::max(live_peak, event.at("args").at("bytes").get<Bytes>());
      continue;
    }
    ASSERT_EQ(kind, "X");
    const std::string name = event.at("name");
    ++names[name];
    EXPECT_GE(event.at("dur").get<double>(), 0);
    if (name == "mini_batch" || name == "update") continue;  // around the others
    const int track = event.at("tid");
    EXPECT_GE(event.at("ts").get<double>(), end_of_track[track] - 0.002);
    end_of_track[track] = event.at("ts").get<double>() + event.at("dur").get<double>();
    if (track != Trace::kCompute) ++copies_of_track[track];
  }
  EXPECT_EQ(names["forward"], 2 * kLayers);
  EXPECT_EQ(names["backward"], 2 * kLayers);
  EXPECT_EQ(names["mini_batch"], 2);
  EXPECT_EQ(names["update"], 4);  // the program and its op
  EXPECT_EQ(names["a0"], 4);      // out and in
  EXPECT_GT(names["wait for copy in"], 0);
  EXPECT_EQ(copies_of_track[Trace::kOut], 2 * kLayers);
  EXPECT_EQ(copies_of_track[Trace::kIn], 2 * kLayers);
  // Input, parameter, result, three activations and a gradient.
  EXPECT_EQ(live_peak, 7 * chain.bytes);
}

TEST(Trace, FollowsTheVirtualClock) {
  const Chain chain{.layers = kLayers, .bytes = 4_KiB, .op_seconds = 2};
  exec::ExecutorOptions options = traced(chain, 1000);
  options.virtual_device =
      DeviceSpec{.host = {.out_bytes_per_second = 4096, .in_bytes_per_second = 4096}};
  Executor executor(chain.selection(), chain.program(), options);
  chain.feed(executor);
  double seconds = 0;
  for (int i = 0; i < 2; ++i) {
    executor.run(ProgramKind::kMiniBatch, {});
    seconds += executor.virtual_seconds();
  }
  const Trace& trace = *options.trace;
  const TraceEvent& last = trace.event(Trace::kCompute, trace.size(Trace::kCompute) - 1);
  EXPECT_EQ(last.kind, TraceEvent::Kind::kProgram);
  EXPECT_NEAR(static_cast<double>(last.end_ns), seconds * 1e9, 1);
  EXPECT_EQ(trace.event(Trace::kOut, 0).begin_ns, 2'000'000'000);
  EXPECT_EQ(trace.event(Trace::kOut, 0).end_ns, 3'000'000'000);
}

TEST(Trace, DropsWhatFindsNoRoom) {
  const Chain chain{.layers = kLayers};
  const exec::ExecutorOptions options = traced(chain, 10);
  Executor executor(chain.selection(), chain.program(), options);
  EXPECT_TRUE(same_bits(chain.run(executor, 2), chain.expected(2)));
  EXPECT_EQ(options.trace->size(Trace::kCompute), 10U);
  EXPECT_GT(options.trace->dropped(), 0U);
  EXPECT_NO_THROW(json::parse(options.trace->json()));
}

}  // namespace
}  // namespace lantern::test
