#include "plan/mutants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/random_program.hpp"

namespace lantern::plan::test {

namespace {

using graph::Selected;
using graph::SelectedOp;
using Kind = Instruction::Kind;
using Instructions = std::vector<Instruction>;

constexpr std::array<const char*, 7> kNames{"alloc", "free",     "run",    "out",
                                            "in",    "wait out", "wait in"};

class Mutator {
 public:
  Mutator(const Selected& selected, const Program& program, Rng& rng)
      : selected_(selected), program_(program), rng_(rng) {}

  std::vector<Mutant> all() {
    for (list_ = 0; list_ < program_.programs.size(); ++list_) {
      const InstructionList& list = program_.programs[list_];
      for (std::size_t at = 0; at < list.instructions.size(); ++at) change_instruction(at);
      for (std::size_t run = 0; run < list.runs.size(); ++run) change_run(run);
      for (std::size_t i = 0; i < list.outs.size(); ++i) change_copy(true, i);
      for (std::size_t i = 0; i < list.ins.size(); ++i) change_copy(false, i);
    }
    for (std::uint32_t buffer = 0; buffer < program_.buffers.size(); ++buffer)
      change_buffer(buffer);
    for (std::size_t slot = 0; slot < program_.slots.size(); ++slot) change_slot(slot);
    change_sizes();
    return std::move(mutants_);
  }

 private:
  template <typename Change>
  void add(const std::string& operation, const std::string& what, Change change) {
    Mutant mutant{operation, what, program_, {}};
    change(mutant.program);
    mutants_.push_back(std::move(mutant));
  }
  std::size_t any(std::size_t count) {
    return static_cast<std::size_t>(rng_.uniform_int(0, static_cast<std::int64_t>(count) - 1));
  }

  void change_instruction(std::size_t at) {
    const Instructions& all = program_.programs[list_].instructions;
    const Instruction here = all[at];
    const std::string kind = kNames[static_cast<std::size_t>(here.kind)];
    const std::string what = fmt::format("{} {} at {}", kind, here.index, at);
    const auto of = [this](Program& p) -> Instructions& { return p.programs[list_].instructions; };
    const auto position = static_cast<std::ptrdiff_t>(at);
    add("delete " + kind, what, [&](Program& p) { of(p).erase(of(p).begin() + position); });
    add("duplicate " + kind, what,
        [&](Program& p) { of(p).insert(of(p).begin() + position, here); });
    if (at + 1 < all.size())
      add("swap neighbours", what, [&](Program& p) { std::swap(of(p)[at], of(p)[at + 1]); });
    const std::size_t other = any(all.size());
    add("swap any two", fmt::format("{} with {}", what, other),
        [&](Program& p) { std::swap(of(p)[at], of(p)[other]); });
    const std::size_t later = at + any(all.size() - at);
    const std::size_t earlier = any(at + 1);
    add(fmt::format("move {} later", kind), fmt::format("{} to {}", what, later), [&](Program& p) {
      std::rotate(of(p).begin() + position, of(p).begin() + position + 1,
                  of(p).begin() + static_cast<std::ptrdiff_t>(later) + 1);
    });
    add(fmt::format("move {} earlier", kind), fmt::format("{} to {}", what, earlier),
        [&](Program& p) {
          std::rotate(of(p).begin() + static_cast<std::ptrdiff_t>(earlier),
                      of(p).begin() + position, of(p).begin() + position + 1);
        });
    add("another index in " + kind, what,
        [&](Program& p) { of(p)[at].index = static_cast<std::uint32_t>(any(here.index + 4)); });
    if (here.kind == Kind::kWaitOut || here.kind == Kind::kWaitIn) {
      add("wait for one less", what, [&](Program& p) { --of(p)[at].index; });
      add("wait for one more", what, [&](Program& p) { ++of(p)[at].index; });
    }
    const std::size_t program = (list_ + 1) % program_.programs.size();
    add("move to another program", what, [&](Program& p) {
      of(p).erase(of(p).begin() + position);
      p.programs[program].instructions.push_back(here);
    });
    if (here.kind == Kind::kRun) repeat(at, here, what);
  }

  // A run once more, later: marked as a recomputation, with its own record.
  void repeat(std::size_t at, Instruction here, const std::string& what) {
    const InstructionList& list = program_.programs[list_];
    const SelectedOp& op = selected_.ops[list.runs[here.index].op];
    const bool adds = std::ranges::find(op.accumulates, true) != op.accumulates.end();
    const std::size_t later = at + 1 + any(list.instructions.size() - at);
    add(adds         ? "add up twice"
        : op.carries ? "statistics twice"
                     : "run again",
        what, [&](Program& p) {
          InstructionList& l = p.programs[list_];
          l.runs.push_back(l.runs[here.index]);
          l.runs.back().again = true;
          l.instructions.insert(l.instructions.begin() + static_cast<std::ptrdiff_t>(later),
                                {Kind::kRun, static_cast<std::uint32_t>(l.runs.size() - 1)});
        });
  }

  void change_run(std::size_t index) {
    const InstructionList& list = program_.programs[list_];
    const Run& run = list.runs[index];
    const SelectedOp& op = selected_.ops[run.op];
    const std::string what = fmt::format("run {} of {}", index, op.op);
    const auto of = [&](Program& p) -> Run& { return p.programs[list_].runs[index]; };
    add("flip again", what, [&](Program& p) { of(p).again = !of(p).again; });
    add("another op", what,
        [&](Program& p) { of(p).op = static_cast<std::uint32_t>(any(selected_.ops.size() + 1)); });
    add("move a range", what, [&](Program& p) { of(p).first_image += rng_.coin() ? 1 : -1; });
    add("resize a range", what, [&](Program& p) { of(p).images += rng_.coin() ? 1 : -1; });
    add("other operands", what, [&](Program& p) {
      of(p).first_operand = static_cast<std::uint32_t>(any(list.operands.size()));
    });
    const std::size_t count = op.reads.size() + op.writes.size();
    for (std::size_t i = run.first_operand; i < run.first_operand + count; ++i) {
      const Operand operand = list.operands[i];
      const Bytes bytes = program_.buffers[operand.buffer].bytes;
      const std::string which = fmt::format("{} operand {}", what, i - run.first_operand);
      const auto set = [&](Program& p) -> Operand& { return p.programs[list_].operands[i]; };
      for (const Bytes shift : {-kCell, kCell, bytes})
        add("change skip", which, [&](Program& p) { set(p).skip += shift; });
      std::vector<std::uint32_t> same_size, same_tensor;
      for (std::uint32_t b = 0; b < program_.buffers.size(); ++b) {
        if (b == operand.buffer) continue;
        if (program_.buffers[b].bytes == bytes) same_size.push_back(b);
        if (program_.buffers[b].tensor == program_.buffers[operand.buffer].tensor)
          same_tensor.push_back(b);
      }
      const std::string role = run.again ? " of a recomputation" : "";
      if (!same_size.empty())
        add("operand of the same size" + role, which,
            [&](Program& p) { set(p).buffer = same_size[any(same_size.size())]; });
      for (const std::uint32_t b : same_tensor)
        add("operand of the same tensor" + role, which, [&](Program& p) { set(p).buffer = b; });
    }
  }

  void change_copy(bool out, std::size_t index) {
    const auto of = [&](Program& p) -> Copy& {
      return (out ? p.programs[list_].outs : p.programs[list_].ins)[index];
    };
    const char* kind = out ? "out" : "in";
    for (int i = 0; i < 3; ++i) {
      add(fmt::format("another slot of copy {}", kind), fmt::format("{} {}", kind, index),
          [&](Program& p) {
            of(p).slot = static_cast<std::uint32_t>(any(program_.slots.size() + (i == 0 ? 1 : 0)));
          });
      add(fmt::format("another buffer of copy {}", kind), fmt::format("{} {}", kind, index),
          [&](Program& p) {
            of(p).buffer = static_cast<std::uint32_t>(any(program_.buffers.size()));
          });
    }
  }

  void change_buffer(std::uint32_t index) {
    const std::string what = fmt::format("buffer {} of {}", index,
                                         selected_.tensors[program_.buffers[index].tensor].name);
    const auto of = [&](Program& p) -> Buffer& { return p.buffers[index]; };
    const std::uint32_t other = static_cast<std::uint32_t>(any(program_.buffers.size()));
    for (const Bytes shift : {-16 * kAlignment, -kAlignment, kAlignment, 16 * kAlignment})
      add("shift a buffer", what, [&](Program& p) { of(p).offset += shift; });
    add("place a buffer over another", what,
        [&](Program& p) { of(p).offset = program_.buffers[other].offset; });
    add("unaligned buffer", what, [&](Program& p) { of(p).offset += 64; });
    add("resize a buffer", what, [&](Program& p) { of(p).bytes += rng_.coin() ? 64 : -64; });
    add("another tensor", what, [&](Program& p) {
      of(p).tensor = static_cast<std::uint32_t>(any(selected_.tensors.size() + 1));
    });
    add("other images", what, [&](Program& p) {
      (rng_.coin() ? of(p).first_image : of(p).images) += rng_.coin() ? 1 : -1;
    });
    add("take over another", what, [&](Program& p) {
      of(p).alias_of = other;
      of(p).offset = program_.buffers[other].offset;
    });
    const std::uint32_t alias_of = program_.buffers[index].alias_of;
    if (alias_of != kNone && alias_of != index) {
      add("forget an alias", what, [&](Program& p) { of(p).alias_of = kNone; });
      forbid(index, what);
    }
    if (program_.persistent[program_.buffers[index].tensor] == index)
      add("forget a persistent tensor", what,
          [&](Program& p) { p.persistent[of(p).tensor] = rng_.coin() ? kNone : other; });
  }

  // The kernels no longer allow what the plan does.
  void forbid(std::uint32_t index, const std::string& what) {
    Mutant mutant{"in place without leave", what, program_, selected_};
    for (SelectedOp& op : mutant.selected->ops) {
      if (std::ranges::find(op.writes, program_.buffers[index].tensor) != op.writes.end())
        op.may_alias.clear();
    }
    mutants_.push_back(std::move(mutant));
  }

  void change_slot(std::size_t index) {
    const std::string what = fmt::format("slot {}", index);
    const auto of = [&](Program& p) -> Slot& { return p.slots[index]; };
    const std::size_t other = any(program_.slots.size());
    add("place a slot over another", what,
        [&](Program& p) { of(p).offset = program_.slots[other].offset; });
    add("shift a slot", what, [&](Program& p) { of(p).offset += rng_.coin() ? 64 : -64; });
    add("shift a slot by pages", what,
        [&](Program& p) { of(p).offset += kFileAlignment * (rng_.coin() ? 1 : -1); });
    add("shrink a slot", what, [&](Program& p) { of(p).bytes -= 64; });
    add("another tier", what,
        [&](Program& p) { of(p).tier = of(p).tier == Tier::kHost ? Tier::kFile : Tier::kHost; });
  }

  void change_sizes() {
    const auto shrink = [&](const char* what, Bytes Program::*size, Bytes by) {
      if (program_.*size > 0) add("sizes", what, [&](Program& p) { p.*size -= by; });
    };
    shrink("arena", &Program::arena_bytes, kFileAlignment);
    shrink("persistent part", &Program::persistent_bytes, 2 * kFileAlignment);
    shrink("peak", &Program::live_peak_bytes, 64);
    shrink("host", &Program::host_bytes, 4 * kFileAlignment);
    shrink("file", &Program::file_bytes, kFileAlignment);
    add("sizes", "persistent list", [](Program& p) { p.persistent.pop_back(); });
  }

  const Selected& selected_;
  const Program& program_;
  Rng& rng_;
  std::size_t list_ = 0;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> make_mutants(const Selected& selected, const Program& program, Rng& rng) {
  return Mutator(selected, program, rng).all();
}

}  // namespace lantern::plan::test
