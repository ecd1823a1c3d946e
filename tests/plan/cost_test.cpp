#include "plan/cost.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "plan/devices.hpp"

namespace lantern::plan {
namespace {

using graph::Role;
using graph::Selected;
using graph::SelectedOp;

const DeviceSpec kRound{.name = "round",
                        .memory = 1_GiB,
                        .flops_per_second = 1e12,
                        .memory_bytes_per_second = 1e11,
                        .op_seconds = 1e-3};

std::uint32_t tensor(Selected& selected, Shape shape, Role role = Role::kActivation) {
  selected.tensors.push_back({.role = role, .bytes = shape.elements() * 4, .shape = shape});
  return static_cast<std::uint32_t>(selected.tensors.size() - 1);
}

double seconds(const Selected& selected) { return op_seconds(selected, selected.ops[0], kRound); }

Selected conv(Shape source, Shape weights, double flops) {
  Selected selected;
  SelectedOp op{.op = "conv_forward", .flops = flops};
  op.reads = {tensor(selected, source), tensor(selected, weights, Role::kParameter)};
  op.writes = {tensor(selected, Shape{source[0], weights[0], source[2], source[3]})};
  op.accumulates = {false};
  selected.ops.push_back(op);
  return selected;
}

TEST(Cost, ConvolutionsReachAPartOfThePeakByTheirClass) {
  EXPECT_DOUBLE_EQ(seconds(conv({1, 64, 8, 8}, {64, 64, 3, 3}, 1e12)), 1 / 0.85);
  EXPECT_DOUBLE_EQ(seconds(conv({1, 64, 8, 8}, {64, 64, 1, 1}, 1e12)), 1 / 0.70);
  Selected grouped = conv({1, 64, 8, 8}, {64, 1, 3, 3}, 1e12);
  grouped.ops[0].groups = 64;
  EXPECT_GT(seconds(grouped), 1 / 0.5);
  // A slice of a map with more channels is no group.
  EXPECT_DOUBLE_EQ(seconds(conv({1, 128, 8, 8}, {64, 64, 3, 3}, 1e12)), 1 / 0.85);
}

TEST(Cost, BackwardOpsFindTheirWeights) {
  Selected selected = conv({1, 64, 8, 8}, {64, 64, 3, 3}, 1e12);
  SelectedOp& op = selected.ops[0];
  op.op = "conv_backward_weights";
  std::swap(op.reads[1], op.writes[0]);
  EXPECT_DOUBLE_EQ(seconds(selected), 1 / 0.85);
  op.op = "conv_backward_data";
  std::swap(op.reads[1], op.writes[0]);
  EXPECT_DOUBLE_EQ(seconds(selected), 1 / 0.85);
}

TEST(Cost, ElementwiseOpsCostTheirBytesAndSumsTwice) {
  Selected selected;
  SelectedOp op{.op = "add"};
  op.reads = {tensor(selected, {1000, 1000, 1000, 1})};
  op.writes = {tensor(selected, {1000, 1000, 1000, 1})};
  op.accumulates = {false};
  selected.ops.push_back(op);
  EXPECT_DOUBLE_EQ(seconds(selected), 8e9 / 1e11);
  selected.ops[0].accumulates = {true};
  EXPECT_DOUBLE_EQ(seconds(selected), 12e9 / 1e11);
}

TEST(Cost, ScratchOfThisMachinesKernelsCostsNothing) {
  Selected selected = conv({1, 64, 8, 8}, {64, 64, 3, 3}, 0);
  const double before = seconds(selected);
  selected.ops[0].writes.push_back(tensor(selected, {1 << 20, 1 << 10, 1, 1}, Role::kScratch));
  selected.ops[0].accumulates.push_back(false);
  EXPECT_DOUBLE_EQ(seconds(selected), before);
}

TEST(Cost, FillsEveryOp) {
  Selected selected = conv({1, 64, 8, 8}, {64, 64, 3, 3}, 1e12);
  set_costs(selected, kRound);
  EXPECT_DOUBLE_EQ(selected.ops[0].seconds, seconds(selected));
}

TEST(Cost, EveryRunIsStartedAnew) {
  const SelectedOp op{.images = 8, .seconds = 4};
  EXPECT_DOUBLE_EQ(run_seconds(op, 8, 0.5), 4.5);
  EXPECT_DOUBLE_EQ(run_seconds(op, 2, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(run_seconds(op, 0, 0.5), 4.5);
  const SelectedOp reads_weights{.images = 8, .seconds = 4, .fixed_seconds = 0.25};
  EXPECT_DOUBLE_EQ(run_seconds(reads_weights, 2, 0.5), 1.75);
}

TEST(Devices, PresetsSurviveTheirTextForm) {
  ASSERT_GE(device_presets().size(), 4U);
  for (const DeviceSpec& device : device_presets()) {
    const DeviceSpec back = parse_device(to_text(device), "x");
    EXPECT_EQ(to_text(back), to_text(device));
    EXPECT_EQ(back.name, device.name);
    EXPECT_EQ(back.memory, device.memory);
    EXPECT_EQ(back.host.in_bytes_per_second, device.host.in_bytes_per_second);
    EXPECT_EQ(back.contention, device.contention);
  }
  EXPECT_EQ(find_preset("rtx2070")->memory, 8_GiB);
  EXPECT_FALSE(find_preset("rtx2071"));
}

std::string fault_of(const std::string& text) {
  try {
    (void)parse_device(text, "my.device");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_EQ(error.where(), "my.device");
    return error.message();
  }
  return "";
}

TEST(Devices, AFileIsReadStrictly) {
  const std::string good = to_text(*find_preset("rtx2070"));
  EXPECT_EQ(fault_of(good), "");
  EXPECT_EQ(parse_device(good + "\n# remark\n", "x").memory, 8_GiB);
  EXPECT_NE(fault_of(good + "memory = 4G\n").find("memory is given twice"), std::string::npos);
  EXPECT_NE(fault_of(good + "contentoin = 1\n").find("did you mean 'contention'?"),
            std::string::npos);
  EXPECT_NE(fault_of(good + "what\n").find("want key = value"), std::string::npos);
  EXPECT_NE(fault_of("name = x\nmemory = 8G\n").find("op_seconds is missing"), std::string::npos);
  const auto with = [&](const std::string& key, const std::string& value) {
    std::string text = good;
    const std::size_t at = text.find("\n" + key + " = ") + 1;
    text.replace(at, text.find('\n', at) - at, key + " = " + value);
    return text;
  };
  EXPECT_NE(fault_of(with("flops_per_second", "0")).find("above 0"), std::string::npos);
  EXPECT_NE(fault_of(with("contention", "0.5")).find("of at least 1"), std::string::npos);
  EXPECT_NE(fault_of(with("op_seconds", "nan")).find("op_seconds is 'nan'"), std::string::npos);
  EXPECT_NE(fault_of(with("host_in_bytes_per_second", "0")).find("one direction only"),
            std::string::npos);
  EXPECT_EQ(parse_device(with("memory", "6G"), "x").memory, 6_GiB);
}

}  // namespace
}  // namespace lantern::plan
