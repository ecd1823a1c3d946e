#pragma once

#include "plan/program.hpp"

namespace lantern::plan::test {

/// A program that copies: op 0 makes x (8 images), x goes out, op 1 makes y and then op 2 the
/// gradient g from y; x comes back for op 3, which makes another gradient, over the bytes of g.
struct CopyingProgram {
  graph::Selected selected;
  Program program;

  static constexpr Bytes kImage = 1000;

  CopyingProgram() {
    using graph::Role;
    const auto tensor = [&](const char* name, Role role) {
      selected.tensors.push_back(
          {.name = name, .role = role, .bytes = 8 * kImage, .shape = {8, 250}, .images = 8});
    };
    tensor("weights", Role::kParameter);
    tensor("x", Role::kActivation);
    tensor("y", Role::kActivation);
    tensor("g", Role::kGradient);
    tensor("h", Role::kGradient);
    const auto op = [&](std::vector<std::uint32_t> reads, std::uint32_t write, double seconds) {
      selected.ops.push_back({.op = "step",
                              .program = graph::ProgramKind::kMiniBatch,
                              .reads = std::move(reads),
                              .writes = {write},
                              .accumulates = {false},
                              .images = 8,
                              .seconds = seconds});
    };
    op({0}, 1, 1);
    op({1}, 2, 2);
    op({2}, 3, 4);
    op({3, 1}, 4, 8);

    const auto buffer = [&](std::uint32_t of, Bytes offset, std::uint32_t alias = kNone) {
      program.buffers.push_back({.tensor = of,
                                 .images = of == 0 ? 0 : 8,
                                 .offset = offset,
                                 .bytes = 8 * kImage,
                                 .alias_of = alias});
    };
    buffer(0, 0);
    buffer(1, 8192);
    buffer(2, 16384);
    buffer(3, 24576);
    buffer(1, 8192);      // x, back again
    buffer(4, 24576, 3);  // h over g
    program.persistent = {0, kNone, kNone, kNone, kNone};
    program.slots = {{.tier = Tier::kHost, .offset = 0, .bytes = 8 * kImage}};
    InstructionList& list = program.of(graph::ProgramKind::kMiniBatch);
    const auto run = [&](std::uint32_t index, std::vector<std::uint32_t> buffers) {
      list.runs.push_back({.op = index,
                           .images = 8,
                           .first_operand = static_cast<std::uint32_t>(list.operands.size())});
      for (const std::uint32_t b : buffers) list.operands.push_back({.buffer = b});
    };
    run(0, {0, 1});
    run(1, {1, 2});
    run(2, {2, 3});
    run(3, {3, 4, 5});
    list.outs = {{.buffer = 1, .slot = 0}};
    list.ins = {{.buffer = 4, .slot = 0}};
    using Kind = Instruction::Kind;
    list.instructions = {
        {Kind::kAlloc, 1},  {Kind::kRun, 0},     {Kind::kOut, 0},  {Kind::kAlloc, 2},
        {Kind::kRun, 1},    {Kind::kWaitOut, 1}, {Kind::kFree, 1}, {Kind::kAlloc, 3},
        {Kind::kAlloc, 4},  {Kind::kIn, 0},      {Kind::kRun, 2},  {Kind::kFree, 2},
        {Kind::kWaitIn, 1}, {Kind::kRun, 3},     {Kind::kFree, 3}, {Kind::kFree, 4}};
  }
};

}  // namespace lantern::plan::test
