#include "plan/random_program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lantern::plan::test {

using graph::ProgramKind;
using graph::Role;

std::uint32_t SelectedBuilder::tensor(const std::string& name, Role role, Bytes bytes) {
  graph::SelectedTensor tensor{.name = name, .role = role, .bytes = bytes, .layout = "raw"};
  tensor.shape = Shape{bytes};
  tensor.dtype = DType::kU8;
  selected_.tensors.push_back(std::move(tensor));
  return static_cast<std::uint32_t>(selected_.tensors.size() - 1);
}

void SelectedBuilder::op(ProgramKind program, std::vector<std::uint32_t> reads,
                         std::vector<std::uint32_t> writes, std::vector<graph::AliasHint> hints,
                         std::vector<bool> accumulates) {
  accumulates.resize(writes.size(), false);
  graph::SelectedOp op{.op = fmt::format("op{}", selected_.ops.size()),
                       .kernel = "none",
                       .program = program,
                       .reads = std::move(reads),
                       .writes = std::move(writes),
                       .accumulates = std::move(accumulates),
                       .may_alias = std::move(hints)};
  selected_.ops.push_back(std::move(op));
}

namespace {

Bytes random_bytes(Rng& rng) {
  if (rng.uniform() < 0.05F) return 0;  // a kernel that needs no scratch
  return rng.coin() ? 256 * rng.uniform_int(1, 40) : rng.uniform_int(1, 9000);
}

// One program: every op reads one to three earlier tensors and writes one or two, some with a hint,
// some with scratch.
void add_program(SelectedBuilder& builder, Rng& rng, ProgramKind kind,
                 const std::vector<std::uint32_t>& persistent, std::uint32_t output) {
  std::vector<std::uint32_t> made{persistent[0]};
  const std::string prefix(to_string(kind));
  const std::int64_t ops = rng.uniform_int(5, 14);
  for (std::int64_t i = 0; i < ops; ++i) {
    std::vector<std::uint32_t> reads;
    for (std::int64_t k = rng.uniform_int(1, 3); k > 0; --k) {
      // Mostly the newest tensors, as chains do.
      const std::int64_t last = static_cast<std::int64_t>(made.size()) - 1;
      const std::int64_t from = rng.coin() ? last : rng.uniform_int(0, last);
      const std::uint32_t tensor = made[static_cast<std::size_t>(from)];
      if (std::ranges::count(reads, tensor) == 0) reads.push_back(tensor);
    }
    if (rng.coin()) reads.push_back(persistent[static_cast<std::size_t>(rng.uniform_int(1, 2))]);
    std::vector<std::uint32_t> writes;
    for (std::int64_t k = rng.uniform_int(1, 2); k > 0; --k) {
      writes.push_back(builder.tensor(fmt::format("{}.t{}.{}", prefix, i, k), Role::kActivation,
                                      random_bytes(rng)));
    }
    std::vector<graph::AliasHint> hints;
    if (rng.coin()) hints.push_back({.output = 0, .input = 0});
    std::vector<std::uint32_t> all = writes;
    if (rng.coin())
      all.push_back(builder.tensor(prefix + ".scratch", Role::kScratch, random_bytes(rng)));
    builder.op(kind, reads, all, hints);
    made.insert(made.end(), writes.begin(), writes.end());
    if (rng.uniform() < 0.3F) {  // a second contribution to a gradient
      builder.op(kind,
                 {made[static_cast<std::size_t>(
                     rng.uniform_int(0, static_cast<std::int64_t>(made.size()) - 2))]},
                 {writes.back()}, {}, {true});
    }
  }
  builder.op(kind, {made.back()}, {output});
}

}  // namespace

graph::Selected random_program(Rng& rng) {
  SelectedBuilder builder;
  const std::vector<std::uint32_t> persistent{
      builder.tensor("images", Role::kInput, random_bytes(rng)),
      builder.tensor("weights", Role::kParameter, random_bytes(rng)),
      builder.tensor("momentum", Role::kState, random_bytes(rng))};
  const std::uint32_t gradient =
      builder.tensor("d_weights", Role::kParameterGradient, random_bytes(rng));
  const std::uint32_t output = builder.tensor("output", Role::kOutput, random_bytes(rng));
  add_program(builder, rng, ProgramKind::kMiniBatch, persistent, gradient);
  builder.op(ProgramKind::kUpdate, {gradient}, {persistent[1], persistent[2]}, {}, {true, true});
  add_program(builder, rng, ProgramKind::kForward, persistent, output);
  return builder.build();
}

}  // namespace lantern::plan::test
