#include "plan/planner.hpp"

#include <gtest/gtest.h>

#include "plan/checker.hpp"
#include "plan/random_program.hpp"

namespace lantern::plan {
namespace {

using graph::ProgramKind;
using graph::Role;
using test::SelectedBuilder;

constexpr ProgramKind kRunIn = ProgramKind::kForward;

/// images -> a -> b -> output, where b may take the bytes of a.
struct Chain {
  SelectedBuilder builder;
  std::uint32_t images = builder.tensor("images", Role::kInput, 512);
  std::uint32_t output = builder.tensor("output", Role::kOutput, 512);
  std::uint32_t a = 0, b = 0;

  explicit Chain(Bytes a_bytes = 1024, Bytes b_bytes = 1024, Role b_role = Role::kActivation) {
    a = builder.tensor("a", Role::kActivation, a_bytes);
    b = builder.tensor("b", b_role, b_bytes);
    builder.op(kRunIn, {images}, {a});
  }
};

Program plan_of(const SelectedBuilder& builder, const PlanOptions& options = {}) {
  const graph::Selected selected = builder.build();
  Program program = make_program(selected, options);
  EXPECT_EQ(find_fault(selected, program), std::nullopt);
  return program;
}

/// The only buffer of a tensor.
std::uint32_t buffer_of(const Program& program, std::uint32_t tensor) {
  std::uint32_t found = kNone;
  for (std::uint32_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].tensor != tensor) continue;
    EXPECT_EQ(found, kNone);
    found = i;
  }
  return found;
}

Bytes offset_of(const Program& program, std::uint32_t tensor) {
  return program.buffers[buffer_of(program, tensor)].offset;
}

/// Whether two tensors lie in the bytes of one buffer.
bool share(const Program& program, std::uint32_t x, std::uint32_t y) {
  const auto root = [&](std::uint32_t tensor) {
    std::uint32_t buffer = buffer_of(program, tensor);
    for (;;) {
      const std::uint32_t next = program.buffers[buffer].alias_of;
      if (next == kNone || next == buffer) return buffer;
      buffer = next;
    }
  };
  return root(x) == root(y);
}

TEST(InPlace, AnOutputTakesTheBytesOfAnInputThatDies) {
  Chain c;
  c.builder.op(kRunIn, {c.a}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.b}, {c.output});
  const Program program = plan_of(c.builder);
  EXPECT_TRUE(share(program, c.a, c.b));
  EXPECT_EQ(offset_of(program, c.a), offset_of(program, c.b));
  EXPECT_EQ(program.live_peak_bytes, program.persistent_bytes + 1024);
}

TEST(InPlace, AChainOfThemStaysInOnePlace) {
  Chain c;
  const std::uint32_t d = c.builder.tensor("d", Role::kActivation, 512);
  c.builder.op(kRunIn, {c.a}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.b}, {d}, {{0, 0}});
  c.builder.op(kRunIn, {d}, {c.output});
  const Program program = plan_of(c.builder);
  EXPECT_TRUE(share(program, c.a, d));
  EXPECT_TRUE(share(program, c.a, c.b));
}

TEST(InPlace, NotWithoutTheKernelsWord) {
  Chain c;
  c.builder.op(kRunIn, {c.a}, {c.b});
  c.builder.op(kRunIn, {c.b}, {c.output});
  EXPECT_FALSE(share(plan_of(c.builder), c.a, c.b));
}

TEST(InPlace, NotOverAnInputThatIsReadLater) {
  Chain c;
  c.builder.op(kRunIn, {c.a}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.b, c.a}, {c.output});
  EXPECT_FALSE(share(plan_of(c.builder), c.a, c.b));
}

TEST(InPlace, NotOverAnInputThatAnAliasOfItKeepsAlive) {
  // b lies in a's bytes; d may not take them while b is still to be read.
  Chain c;
  const std::uint32_t d = c.builder.tensor("d", Role::kActivation, 1024);
  c.builder.op(kRunIn, {c.a}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.b}, {d}, {{0, 0}});
  c.builder.op(kRunIn, {d, c.b}, {c.output});
  const Program program = plan_of(c.builder);
  EXPECT_TRUE(share(program, c.a, c.b));
  EXPECT_FALSE(share(program, c.b, d));
}

TEST(InPlace, NotOverWhatOutlivesTheProgram) {
  Chain c;
  c.builder.op(kRunIn, {c.images}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.a, c.b}, {c.output});
  EXPECT_FALSE(share(plan_of(c.builder), c.images, c.b));
  Chain kept(1024, 1024, Role::kOutput);
  kept.builder.op(kRunIn, {kept.a}, {kept.b}, {{0, 0}});
  EXPECT_FALSE(share(plan_of(kept.builder), kept.a, kept.b));
}

TEST(InPlace, NotIntoTooFewBytes) {
  Chain c(1024, 1025);
  c.builder.op(kRunIn, {c.a}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.b}, {c.output});
  EXPECT_FALSE(share(plan_of(c.builder), c.a, c.b));
}

TEST(InPlace, NotWhenTheInputIsReadTwiceByTheOp) {
  Chain c;
  c.builder.op(kRunIn, {c.a, c.a}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.b}, {c.output});
  EXPECT_FALSE(share(plan_of(c.builder), c.a, c.b));
}

TEST(InPlace, OnlyOneOutputGetsTheBytes) {
  Chain c;
  const std::uint32_t d = c.builder.tensor("d", Role::kActivation, 1024);
  c.builder.op(kRunIn, {c.a}, {c.b, d}, {{0, 0}, {1, 0}});
  c.builder.op(kRunIn, {c.b, d}, {c.output});
  const Program program = plan_of(c.builder);
  EXPECT_TRUE(share(program, c.a, c.b));
  EXPECT_FALSE(share(program, c.b, d));
}

TEST(KeepEverything, GivesEveryTensorBytesOfItsOwnToTheEnd) {
  Chain c;
  c.builder.op(kRunIn, {c.a}, {c.b}, {{0, 0}});
  c.builder.op(kRunIn, {c.b}, {c.output});
  const Program program = plan_of(c.builder, {.keep_everything = true});
  EXPECT_FALSE(share(program, c.a, c.b));
  EXPECT_EQ(program.live_peak_bytes, program.persistent_bytes + 2048);
}

TEST(Plan, TransientsOfDifferentProgramsShareBytes) {
  Chain c;
  c.builder.op(kRunIn, {c.a}, {c.output});
  const std::uint32_t other = c.builder.tensor("other", Role::kActivation, 1024);
  c.builder.op(ProgramKind::kUpdate, {c.images}, {other});
  c.builder.op(ProgramKind::kUpdate, {other}, {c.output});
  const Program program = plan_of(c.builder);
  EXPECT_EQ(offset_of(program, c.a), offset_of(program, other));
}

TEST(Plan, IsTheSameForTheSameInput) {
  for (std::uint32_t n = 0; n < 20; ++n) {
    Rng rng(5, "same", 0, n);
    const graph::Selected selected = test::random_program(rng);
    EXPECT_EQ(make_program(selected).dump(selected), make_program(selected).dump(selected));
  }
}

TEST(Plan, HoldsOnRandomProgramsWithAndWithoutSharing) {
  for (std::uint32_t n = 0; n < 200; ++n) {
    Rng rng(6, "holds", 0, n);
    const graph::Selected selected = test::random_program(rng);
    const Program shared = make_program(selected);
    EXPECT_EQ(find_fault(selected, shared), std::nullopt) << n;
    const Program kept = make_program(selected, {.keep_everything = true});
    EXPECT_EQ(find_fault(selected, kept), std::nullopt) << n;
    EXPECT_LE(shared.live_peak_bytes, kept.live_peak_bytes);
    EXPECT_LE(shared.live_peak_bytes, shared.arena_bytes);
  }
}

}  // namespace
}  // namespace lantern::plan
