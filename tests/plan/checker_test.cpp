// The checker is checked: plans broken on purpose must be refused, and only those.

#include "plan/checker.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "plan/planner.hpp"
#include "plan/random_program.hpp"

namespace lantern::plan {
namespace {

using Kind = Instruction::Kind;
using graph::Selected;

struct Mutant {
  std::string operation;
  std::string what;
  Program program;
};

/// All ways to break one plan. Every mutant is a fault by construction.
class Mutator {
 public:
  Mutator(const Selected& selected, const Program& program)
      : selected_(selected), program_(program) {}

  std::vector<Mutant> all() {
    for (std::size_t kind = 0; kind < program_.programs.size(); ++kind) {
      for (std::size_t at = 0; at < program_.programs[kind].size(); ++at)
        break_instruction(kind, at);
    }
    for (std::uint32_t tensor = 0; tensor < selected_.tensors.size(); ++tensor)
      break_placement(tensor);
    for (const graph::SelectedOp& op : selected_.ops) write_over_inputs(op);
    shrink_arena();
    return std::move(mutants_);
  }

 private:
  using List = std::vector<Instruction>;

  template <typename Change>
  void add(const std::string& operation, const std::string& what, Change change) {
    Mutant mutant{operation, what, program_};
    change(mutant.program);
    mutants_.push_back(std::move(mutant));
  }

  std::string name(const Instruction& instruction) const {
    return instruction.kind == Kind::kRun ? selected_.ops[instruction.index].op
                                          : selected_.tensors[instruction.index].name;
  }
  bool persistent(std::uint32_t tensor) const {
    return graph::is_persistent(selected_.tensors[tensor].role);
  }
  bool touches(std::uint32_t op, std::uint32_t owner) const {
    const auto owns = [&](std::uint32_t tensor) { return program_.alias_of[tensor] == owner; };
    return std::ranges::any_of(selected_.ops[op].reads, owns) ||
           std::ranges::any_of(selected_.ops[op].writes, owns);
  }

  void break_instruction(std::size_t kind, std::size_t at) {
    const List& list = program_.programs[kind];
    const Instruction here = list[at];
    const auto position = static_cast<std::ptrdiff_t>(at);
    add("drop", name(here),
        [&](Program& p) { p.programs[kind].erase(p.programs[kind].begin() + position); });
    add("duplicate", name(here),
        [&](Program& p) { p.programs[kind].insert(p.programs[kind].begin() + position, here); });
    const std::size_t other = (kind + 1) % program_.programs.size();
    add("move to another program", name(here), [&](Program& p) {
      p.programs[kind].erase(p.programs[kind].begin() + position);
      p.programs[other].push_back(here);
    });
    if (here.kind == Kind::kRun) {
      for (std::size_t k = at + 1; k < list.size(); ++k) {
        if (list[k].kind != Kind::kRun) continue;
        add("swap two ops", name(here) + " and " + name(list[k]),
            [&](Program& p) { std::swap(p.programs[kind][at], p.programs[kind][k]); });
      }
    }
    if (here.kind == Kind::kFree) {
      for (std::size_t k = at; k-- > 0;) {
        if (list[k].kind != Kind::kRun || !touches(list[k].index, here.index)) continue;
        add("free earlier", name(here), [&](Program& p) {
          List& l = p.programs[kind];
          std::rotate(l.begin() + static_cast<std::ptrdiff_t>(k), l.begin() + position,
                      l.begin() + position + 1);
        });
      }
    }
    if (here.kind == Kind::kAlloc) {
      for (std::size_t k = at + 1; k < list.size(); ++k) {
        if (list[k].kind != Kind::kRun || !touches(list[k].index, here.index)) continue;
        add("alloc later", name(here), [&](Program& p) {
          List& l = p.programs[kind];
          std::rotate(l.begin() + position, l.begin() + position + 1,
                      l.begin() + static_cast<std::ptrdiff_t>(k) + 1);
        });
      }
    }
  }

  void break_placement(std::uint32_t tensor) {
    const std::string& label = selected_.tensors[tensor].name;
    const std::uint32_t owner = program_.alias_of[tensor];
    if (owner != tensor) {
      for (const Bytes shift : {-kAlignment, kAlignment}) {
        add("shift a shared tensor", label,
            [&](Program& p) { p.placements[tensor].offset += shift; });
      }
      add("forget an alias", label, [&](Program& p) { p.alias_of[tensor] = tensor; });
    }
    add("unaligned", label, [&](Program& p) { p.placements[tensor].offset += 64; });
    add("outside the arena", label,
        [&](Program& p) { p.placements[tensor].offset = p.arena_bytes; });
    add("not placed", label, [&](Program& p) { p.placements[tensor].offset = -1; });
    for (std::uint32_t other = 0; other < selected_.tensors.size(); ++other) {
      if (other == tensor || program_.alias_of[other] == owner) continue;
      add("point elsewhere", label + " at " + selected_.tensors[other].name, [&](Program& p) {
        p.alias_of[tensor] = p.alias_of[other];
        p.placements[tensor].offset = p.placements[other].offset;
      });
    }
    if (persistent(tensor)) {
      for (std::uint32_t other = 0; other < selected_.tensors.size(); ++other) {
        if (other == tensor) continue;
        add("persistent over another", label + " over " + selected_.tensors[other].name,
            [&](Program& p) { p.placements[tensor].offset = p.placements[other].offset; });
      }
    }
  }

  // The output takes an input's bytes although the kernel never said so; lives are mended so that
  // only this is wrong.
  void write_over_inputs(const graph::SelectedOp& op) {
    for (std::size_t w = 0; w < op.writes.size(); ++w) {
      const std::uint32_t output = op.writes[w];
      if (persistent(output) || op.accumulates[w] || program_.alias_of[output] != output) continue;
      for (std::size_t r = 0; r < op.reads.size(); ++r) {
        const std::uint32_t owner = program_.alias_of[op.reads[r]];
        if (persistent(owner) || owner == output) continue;
        if (selected_.tensors[output].bytes > selected_.tensors[owner].bytes) continue;
        const bool allowed = std::ranges::any_of(op.may_alias, [&](const graph::AliasHint& hint) {
          return hint.output == static_cast<int>(w) &&
                 op.reads[static_cast<std::size_t>(hint.input)] == op.reads[r];
        });
        if (allowed) continue;
        add("write over an input",
            selected_.tensors[output].name + " over " + selected_.tensors[owner].name,
            [&](Program& p) { merge(p, output, owner, static_cast<std::size_t>(op.program)); });
      }
    }
  }

  void merge(Program& p, std::uint32_t output, std::uint32_t owner, std::size_t kind) const {
    for (std::uint32_t i = 0; i < p.alias_of.size(); ++i) {
      if (p.alias_of[i] != output) continue;
      p.alias_of[i] = owner;
      p.placements[i].offset = p.placements[owner].offset;
    }
    List& list = p.programs[kind];
    std::erase_if(
        list, [&](const Instruction& i) { return i.kind == Kind::kAlloc && i.index == output; });
    const auto free_of = [&](std::uint32_t tensor) {
      return std::ranges::find_if(
          list, [&](const Instruction& i) { return i.kind == Kind::kFree && i.index == tensor; });
    };
    // The shared bytes live until the later of the two deaths.
    if (free_of(owner) < free_of(output)) {
      list.erase(free_of(owner));
      free_of(output)->index = owner;
    } else {
      list.erase(free_of(output));
    }
  }

  void shrink_arena() {
    Bytes top = 0;
    for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
      if (program_.placements[i].offset >= 0) {
        top = std::max(top, program_.placements[i].offset + selected_.tensors[i].bytes);
      }
    }
    add("shrink the arena", "", [&](Program& p) { p.arena_bytes = top - 1; });
    add("shrink the persistent part", "",
        [&](Program& p) { p.persistent_bytes -= 2 * kAlignment; });
    add("forget a tensor", "", [&](Program& p) { p.placements.pop_back(); });
  }

  const Selected& selected_;
  const Program& program_;
  std::vector<Mutant> mutants_;
};

TEST(Checker, KillsEveryMutantOfRandomPlans) {
  std::map<std::string, std::pair<int, int>> tally;  // operation -> killed, made
  int made = 0;
  int killed = 0;
  for (std::uint32_t n = 0; n < 30; ++n) {
    Rng rng(7, "mutants", 0, n);
    const Selected selected = test::random_program(rng);
    for (const bool keep : {false, true}) {
      const Program program = make_program(selected, {.keep_everything = keep});
      ASSERT_EQ(find_fault(selected, program), std::nullopt);
      for (const Mutant& mutant : Mutator(selected, program).all()) {
        const bool found = find_fault(selected, mutant.program).has_value();
        auto& [of_kind, total] = tally[mutant.operation];
        of_kind += found ? 1 : 0;
        ++total;
        ++made;
        killed += found ? 1 : 0;
        if (!found)
          fmt::print("survivor in plan {}{}: {} {}\n", n, keep ? " (kept)" : "", mutant.operation,
                     mutant.what);
      }
    }
  }
  for (const auto& [operation, counts] : tally) {
    fmt::print("{:28} {} of {} killed\n", operation, counts.first, counts.second);
    EXPECT_GT(counts.second, 0);
  }
  EXPECT_GE(tally.size(), 15U);
  EXPECT_GE(killed, 0.99 * made) << killed << " of " << made;
}

// ---- moved blocks: right or wrong by a brute-force look at lives and bytes
// -----------------------

struct Life {
  std::size_t kind = 0, first = 0, last = 0;
};

/// Whether blocks that live together overlap, or leave their part of the arena.
bool is_broken(const Selected& selected, const Program& program) {
  std::map<std::uint32_t, Life> lives;
  for (std::size_t kind = 0; kind < program.programs.size(); ++kind) {
    for (std::size_t at = 0; at < program.programs[kind].size(); ++at) {
      const Instruction& i = program.programs[kind][at];
      if (i.kind == Kind::kAlloc) lives[i.index] = {kind, at, at};
      if (i.kind == Kind::kFree) lives[i.index].last = at;
    }
  }
  const auto begin = [&](std::uint32_t t) { return program.placements[t].offset; };
  const auto end = [&](std::uint32_t t) { return begin(t) + selected.tensors[t].bytes; };
  for (auto x = lives.begin(); x != lives.end(); ++x) {
    if (selected.tensors[x->first].bytes == 0) continue;
    if (begin(x->first) < program.persistent_bytes || end(x->first) > program.arena_bytes)
      return true;
    for (auto y = lives.begin(); y != x; ++y) {
      if (selected.tensors[y->first].bytes == 0) continue;
      const bool together = x->second.kind == y->second.kind && x->second.first < y->second.last &&
                            y->second.first < x->second.last;
      if (together && begin(x->first) < end(y->first) && begin(y->first) < end(x->first))
        return true;
    }
  }
  return false;
}

TEST(Checker, AgreesWithBruteForceOnMovedBlocks) {
  int broken = 0;
  int sound = 0;
  for (std::uint32_t n = 0; n < 60; ++n) {
    Rng rng(8, "moved", 0, n);
    const Selected selected = test::random_program(rng);
    const Program program = make_program(selected);
    for (std::uint32_t tensor = 0; tensor < selected.tensors.size(); ++tensor) {
      if (graph::is_persistent(selected.tensors[tensor].role) || program.alias_of[tensor] != tensor)
        continue;
      for (const Bytes shift :
           {-4 * kAlignment, -kAlignment, kAlignment, 4 * kAlignment, 16 * kAlignment}) {
        Program moved = program;
        for (std::uint32_t i = 0; i < selected.tensors.size(); ++i) {
          if (program.alias_of[i] == tensor) moved.placements[i].offset += shift;
        }
        const bool expected = is_broken(selected, moved);
        const std::optional<std::string> fault = find_fault(selected, moved);
        EXPECT_EQ(fault.has_value(), expected)
            << "plan " << n << ": " << selected.tensors[tensor].name << " by " << shift << ": "
            << fault.value_or("no fault");
        (expected ? broken : sound) += 1;
      }
    }
  }
  EXPECT_GT(broken, 100);
  EXPECT_GT(sound, 100);
}

TEST(Checker, NamesTheFault) {
  Rng rng(9, "names");
  const Selected selected = test::random_program(rng);
  Program program = make_program(selected);
  auto& list = program.programs[0];
  list.erase(
      std::ranges::find_if(list, [](const Instruction& i) { return i.kind == Kind::kAlloc; }));
  const std::optional<std::string> fault = find_fault(selected, program);
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->find("is not live"), std::string::npos) << *fault;
  EXPECT_THROW(check(selected, program), Error);
}

}  // namespace
}  // namespace lantern::plan
