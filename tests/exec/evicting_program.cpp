#include "exec/evicting_program.hpp"

#include <cmath>
#include <cstring>

namespace lantern::test {

namespace {

using graph::ProgramKind;
using graph::Role;
using plan::Instruction;
using Kind = Instruction::Kind;

constexpr std::uint32_t kInput = 0, kParameter = 1, kResult = 2, kActivations = 3;

std::uint32_t index(int i) { return static_cast<std::uint32_t>(i); }

// Builds one instruction list.
class ListWriter {
 public:
  ListWriter(plan::Program& program, ProgramKind kind)
      : program_(program), list_(program.of(kind)) {}

  std::uint32_t buffer(std::uint32_t tensor, Bytes offset, Bytes bytes,
                       std::uint32_t alias_of = plan::kNone) {
    program_.buffers.push_back(
        {.tensor = tensor, .offset = offset, .bytes = bytes, .alias_of = alias_of});
    return static_cast<std::uint32_t>(program_.buffers.size() - 1);
  }
  void add(Kind kind, std::uint32_t i) { list_.instructions.push_back({kind, i}); }
  void run(std::uint32_t op, std::initializer_list<std::uint32_t> buffers) {
    list_.runs.push_back(
        {.op = op, .first_operand = static_cast<std::uint32_t>(list_.operands.size())});
    for (const std::uint32_t operand : buffers) list_.operands.push_back({.buffer = operand});
    add(Kind::kRun, static_cast<std::uint32_t>(list_.runs.size() - 1));
  }
  void out(std::uint32_t from, std::uint32_t slot) {
    list_.outs.push_back({from, slot});
    add(Kind::kOut, static_cast<std::uint32_t>(list_.outs.size() - 1));
  }
  void in(std::uint32_t to, std::uint32_t slot) {
    list_.ins.push_back({to, slot});
    add(Kind::kIn, static_cast<std::uint32_t>(list_.ins.size() - 1));
  }

 private:
  plan::Program& program_;
  plan::InstructionList& list_;
};

}  // namespace

ops::Selection Chain::selection() const {
  ops::Selection result;
  const auto count = static_cast<std::size_t>(bytes / 4);
  const auto tensor = [&](std::string name, Role role) {
    result.selected.tensors.push_back(
        {.name = std::move(name), .role = role, .bytes = bytes, .shape = {bytes / 4}});
    result.layouts.emplace_back();
  };
  tensor("input", Role::kInput);
  tensor("parameter", Role::kParameter);
  tensor("result", Role::kOutput);
  for (int i = 0; i < layers; ++i) tensor("a" + std::to_string(i), Role::kActivation);
  for (int i = 0; i < layers; ++i) tensor("g" + std::to_string(i), Role::kGradient);

  int number = 0;
  const auto op = [&](std::string kind, std::string label, ProgramKind program,
                      std::vector<std::uint32_t> reads, std::uint32_t write, auto value) {
    result.selected.ops.push_back({.op = std::move(kind),
                                   .kernel = "test",
                                   .label = std::move(label),
                                   .program = program,
                                   .layer = number,
                                   .reads = reads,
                                   .writes = {write},
                                   .accumulates = {false},
                                   .seconds = op_seconds});
    result.kernels.push_back(
        ops::make_kernel([count, value, number, before = before_op, inputs = reads.size()](
                             std::span<void* const> operands, const ops::RunContext&) {
          if (before) before(number);
          const auto* first = static_cast<const float*>(operands[0]);
          const auto* second = static_cast<const float*>(operands[inputs - 1]);
          auto* out = static_cast<float*>(operands[inputs]);
          for (std::size_t i = 0; i < count; ++i) out[i] = value(first[i], second[i]);
        }));
    ++number;
  };
  const auto forward = [](float x, float y) { return 0.75F * x + std::sin(y); };
  const auto backward = [](float g, float a) { return 0.5F * g + a * a; };
  for (int i = 0; i < layers; ++i) {
    const std::uint32_t made = kActivations + index(i);
    const std::vector<std::uint32_t> reads =
        i == 0 ? std::vector{kInput, kParameter} : std::vector{made - 1};
    op("forward", "a" + std::to_string(i), ProgramKind::kMiniBatch, reads, made, forward);
  }
  const std::uint32_t gradients = kActivations + index(layers);
  for (int i = 0; i < layers; ++i) {
    const std::uint32_t activation = kActivations + index(layers - 1 - i);
    const std::vector<std::uint32_t> reads =
        i == 0 ? std::vector{activation} : std::vector{gradients + index(i - 1), activation};
    op("backward", "g" + std::to_string(i), ProgramKind::kMiniBatch, reads, gradients + index(i),
       backward);
    if (i > 0) result.selected.ops.back().may_alias = {{.output = 0, .input = 0}};
  }
  op("copy", "result", ProgramKind::kMiniBatch, {gradients + index(layers - 1)}, kResult,
     [](float x, float) { return x; });
  op("update", "parameter", ProgramKind::kUpdate, {kParameter, kResult}, kParameter,
     [](float x, float y) { return x - 0.01F * y; });
  return result;
}

plan::Program Chain::program() const {
  constexpr int kWindow = 3;  // activations in the arena at a time
  plan::Program program;
  const ops::Selection made = selection();
  program.persistent.assign(made.selected.tensors.size(), plan::kNone);
  ListWriter list(program, ProgramKind::kMiniBatch);
  for (const std::uint32_t tensor : {kInput, kParameter, kResult})
    program.persistent[tensor] = list.buffer(tensor, tensor * bytes, bytes);
  program.persistent_bytes = 3 * bytes;
  const bool evicts = evict != Evict::kNothing;
  const auto place = [&](int i) { return (3 + (evicts ? i % kWindow : i)) * bytes; };
  const Bytes gradient_place = (3 + (evicts ? kWindow : layers)) * bytes;
  program.arena_bytes = gradient_place + bytes;
  for (int i = 0; evicts && i < layers; ++i) {
    const bool to_file = evict == Evict::kToFile || (evict == Evict::kToBoth && i % 2 == 1);
    Bytes& used = to_file ? program.file_bytes : program.host_bytes;
    program.slots.push_back({to_file ? plan::Tier::kFile : plan::Tier::kHost, used, bytes});
    used += bytes;
  }

  std::uint32_t op = 0;
  std::vector<std::uint32_t> held;  // buffer of every activation, its latest
  for (int i = 0; i < layers; ++i) {
    if (evicts && i >= kWindow) {
      list.add(Kind::kWaitOut, index(i - kWindow + 1));
      list.add(Kind::kFree, held[static_cast<std::size_t>(i - kWindow)]);
    }
    held.push_back(list.buffer(kActivations + index(i), place(i), bytes));
    list.add(Kind::kAlloc, held.back());
    if (i == 0) {
      list.run(op++, {program.persistent[kInput], program.persistent[kParameter], held[0]});
    } else {
      list.run(op++, {held[static_cast<std::size_t>(i - 1)], held.back()});
    }
    if (evicts) list.out(held.back(), index(i));
  }
  if (evicts) {
    list.add(Kind::kWaitOut, index(layers));
    for (int i = std::max(0, layers - kWindow); i < layers; ++i)
      list.add(Kind::kFree, held[static_cast<std::size_t>(i)]);
  }
  const auto fetch = [&](int i) {
    held[static_cast<std::size_t>(i)] = list.buffer(kActivations + index(i), place(i), bytes);
    list.add(Kind::kAlloc, held[static_cast<std::size_t>(i)]);
    list.in(held[static_cast<std::size_t>(i)], index(i));
  };
  int next = layers - 1;
  std::uint32_t gradient = plan::kNone;
  for (int i = 0; i < layers; ++i) {
    const int activation = layers - 1 - i;
    while (evicts && next >= 0 && next > activation - kWindow) fetch(next--);
    if (evicts) list.add(Kind::kWaitIn, index(i + 1));
    const std::uint32_t held_now = held[static_cast<std::size_t>(activation)];
    const std::uint32_t before = gradient;
    gradient = list.buffer(kActivations + index(layers + i), gradient_place, bytes, before);
    list.add(Kind::kAlloc, gradient);
    if (i == 0) {
      list.run(op++, {held_now, gradient});
    } else {
      list.run(op++, {before, held_now, gradient});
      list.add(Kind::kFree, before);
    }
    list.add(Kind::kFree, held_now);
  }
  list.run(op++, {gradient, program.persistent[kResult]});
  list.add(Kind::kFree, gradient);

  ListWriter update(program, ProgramKind::kUpdate);
  update.run(op, {program.persistent[kParameter], program.persistent[kResult],
                  program.persistent[kParameter]});
  return program;
}

void Chain::feed(exec::Executor& executor) const {
  std::vector<float> values(static_cast<std::size_t>(bytes / 4));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i) * 0.37F);
  std::memcpy(executor.bytes(input()).data(), values.data(), static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::cos(static_cast<float>(i) * 0.11F);
  std::memcpy(executor.bytes(parameter()).data(), values.data(), static_cast<std::size_t>(bytes));
}

std::vector<float> Chain::values(const exec::Executor& executor) const {
  const auto count = static_cast<std::size_t>(bytes / 4);
  std::vector<float> values(2 * count);
  std::memcpy(values.data(), executor.bytes(result()).data(), static_cast<std::size_t>(bytes));
  std::memcpy(values.data() + count, executor.bytes(parameter()).data(),
              static_cast<std::size_t>(bytes));
  return values;
}

std::vector<float> Chain::run(exec::Executor& executor, int times) const {
  feed(executor);
  for (int i = 0; i < times; ++i) {
    executor.run(ProgramKind::kMiniBatch, {});
    executor.run(ProgramKind::kUpdate, {});
  }
  return values(executor);
}

std::vector<float> Chain::expected(int times) const {
  Chain plain = *this;
  plain.evict = Evict::kNothing;
  plain.before_op = {};
  exec::Executor executor(plain.selection(), plain.program(), 1);
  return plain.run(executor, times);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace lantern::test
