#include "plan/interpreter.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "plan/random_program.hpp"

namespace lantern::plan::test {

namespace {

using graph::SelectedOp;
using graph::SelectedTensor;
using Cell = std::uint64_t;
using Cells = std::span<Cell>;
using Kind = Instruction::Kind;

constexpr Cell kPoison = 0xdeadbeefdeadbeef;

Cell mix(Cell a, Cell b) {
  Cell x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
Cell digest(Cell from, std::span<const Cell> cells) {
  for (const Cell cell : cells) from = mix(from, cell);
  return from;
}

struct Broken {};  // an address or an index outside

class Interpreter {
 public:
  Interpreter(const graph::Selected& selected, const Program& program, Timing timing)
      : selected_(selected), program_(program), timing_(timing) {
    arena_.assign(static_cast<std::size_t>(std::max<Bytes>(program.arena_bytes, 0) / kCell),
                  kPoison);
    tiers_[0].assign(static_cast<std::size_t>(program.host_bytes / kCell), kPoison);
    tiers_[1].assign(static_cast<std::size_t>(program.file_bytes / kCell), kPoison);
  }

  std::vector<Cell> run() {
    for (std::uint32_t t = 0; t < selected_.tensors.size(); ++t) {
      Cell value = t;
      if (is_persistent(t)) {
        for (Cell& cell : of_buffer(program_.persistent.at(t))) cell = value = mix(value, 1);
      }
    }
    for (const int kind : {0, 1, 2, 3, 0, 3})
      run_program(program_.programs[static_cast<std::size_t>(kind)]);
    std::vector<Cell> values;
    for (std::uint32_t t = 0; t < selected_.tensors.size(); ++t) {
      if (!is_persistent(t)) continue;
      const Cells cells = of_buffer(program_.persistent[t]);
      values.insert(values.end(), cells.begin(), cells.end());
    }
    return values;
  }

 private:
  bool is_persistent(std::uint32_t t) const {
    return graph::is_persistent(selected_.tensors[t].role);
  }

  static Cells part(std::vector<Cell>& memory, Bytes offset, Bytes bytes) {
    if (offset < 0 || bytes < 0 || offset % kCell != 0 || bytes % kCell != 0) throw Broken{};
    const auto begin = static_cast<std::size_t>(offset / kCell);
    const auto count = static_cast<std::size_t>(bytes / kCell);
    if (begin > memory.size() || count > memory.size() - begin) throw Broken{};
    return Cells(memory).subspan(begin, count);
  }
  template <typename T>
  static const T& entry(const std::vector<T>& all, std::size_t index) {
    if (index >= all.size()) throw Broken{};
    return all[index];
  }
  Cells of_buffer(std::uint32_t buffer) {
    const Buffer& b = entry(program_.buffers, buffer);
    return part(arena_, b.offset, b.bytes);
  }

  void copy(const Copy& copy, bool out) {
    const Slot& slot = entry(program_.slots, copy.slot);
    const Cells here = of_buffer(copy.buffer);
    const Cells there = part(tiers_[static_cast<std::size_t>(slot.tier)], slot.offset,
                             static_cast<Bytes>(here.size()) * kCell);
    if (out) {
      std::ranges::copy(here, there.begin());
    } else {
      std::ranges::copy(there, here.begin());
    }
    if (slot.tier == Tier::kHost) return;
    // Whole pages are moved; what lies behind the values is anything.
    const Bytes used = static_cast<Bytes>(here.size()) * kCell;
    const Bytes more = round_up(used, kFileAlignment) - used;
    std::ranges::fill(out ? part(tiers_[1], slot.offset + used, more)
                          : part(arena_, program_.buffers[copy.buffer].offset + used, more),
                      kPoison);
  }

  void run_program(const InstructionList& list) {
    std::size_t outs_begun = 0, outs_done = 0, ins_begun = 0, ins_done = 0;
    const auto finish_outs = [&](std::size_t n) {
      for (; outs_done < n; ++outs_done) {
        if (timing_.outs_late) copy(list.outs[outs_done], true);
      }
    };
    const auto finish_ins = [&](std::size_t n) {
      for (; ins_done < n; ++ins_done) {
        if (timing_.ins_late) copy(list.ins[ins_done], false);
      }
    };
    for (const Instruction& i : list.instructions) {
      switch (i.kind) {
        case Kind::kAlloc:
        case Kind::kFree:
          std::ranges::fill(of_buffer(i.index), kPoison);
          break;
        case Kind::kOut:
          if (i.index != outs_begun || i.index >= list.outs.size()) throw Broken{};
          ++outs_begun;
          if (!timing_.outs_late) copy(list.outs[i.index], true);
          break;
        case Kind::kIn:
          if (i.index != ins_begun || i.index >= list.ins.size()) throw Broken{};
          ++ins_begun;
          std::ranges::fill(of_buffer(list.ins[i.index].buffer), kPoison);
          if (!timing_.ins_late) copy(list.ins[i.index], false);
          break;
        case Kind::kWaitOut:
          if (i.index > outs_begun) throw Broken{};
          finish_outs(i.index);
          break;
        case Kind::kWaitIn:
          if (i.index > ins_begun) throw Broken{};
          finish_ins(i.index);
          break;
        case Kind::kRun:
          run_op(list, entry(list.runs, i.index));
          break;
      }
    }
    finish_outs(outs_begun);
    finish_ins(ins_begun);
  }

  struct Value {
    Cells cells;
    std::size_t image_cells = 0;  // 0: not divided by this op
    Cells image(std::int64_t i) const {
      return image_cells == 0
                 ? cells
                 : cells.subspan(static_cast<std::size_t>(i) * image_cells, image_cells);
    }
  };

  void run_op(const InstructionList& list, const Run& run) {
    const SelectedOp& op = entry(selected_.ops, run.op);
    const std::int64_t images = op.images == 0 ? 1 : run.images;
    if (images < 0 || run.first_image < 0 || run.first_image + run.images > op.images)
      throw Broken{};
    reads_.clear();
    writes_.clear();
    for (std::size_t i = 0; i < op.reads.size() + op.writes.size(); ++i) {
      const bool writes = i >= op.reads.size();
      const SelectedTensor& t =
          selected_.tensors[writes ? op.writes[i - op.reads.size()] : op.reads[i]];
      const Operand& operand = entry(list.operands, run.first_operand + i);
      const Bytes start = entry(program_.buffers, operand.buffer).offset + operand.skip;
      const bool divided = op.images > 0 && t.images > 0;
      const Bytes bytes = divided ? t.bytes / t.images * images : t.bytes;
      (writes ? writes_ : reads_)
          .push_back({part(arena_, start, bytes),
                      divided ? static_cast<std::size_t>(t.bytes / t.images / kCell) : 0});
    }
    spoil(op, run);
    std::vector<Cell> found;  // by image
    for (std::int64_t i = 0; i < images; ++i) {
      Cell value = mix(run.op, static_cast<Cell>(run.first_image + i));
      for (const Value& read : reads_) value = digest(value, read.image(i));
      found.push_back(value);
    }
    Cell carried = 0;
    for (std::size_t w = op.writes.size(); w-- > 0;) {
      if (op.carries && is_scratch(op, w)) {
        add_up(op, run, w, found);
        carried = digest(carried, writes_[w].cells);
      }
    }
    for (std::size_t w = 0; w < op.writes.size(); ++w) {
      if (is_scratch(op, w)) continue;
      if (op.images > 0 && writes_[w].image_cells == 0) {
        add_up(op, run, w, found);
        if (run.first_image + run.images == op.images) {
          for (Cell& cell : writes_[w].cells) cell = mix(cell, carried);
        }
        continue;
      }
      for (std::int64_t i = 0; i < images; ++i) {
        Cell c = 0;
        for (Cell& cell : writes_[w].image(i)) {
          const Cell value = mix(mix(found[static_cast<std::size_t>(i)], w), ++c);
          cell = op.accumulates[w] ? mix(cell, value) : value;
        }
      }
    }
    // Scratch is worked in at any time, so last as well.
    for (std::size_t w = 0; w < op.writes.size(); ++w) {
      if (is_scratch(op, w) && !op.carries) std::ranges::fill(writes_[w].cells, kPoison);
    }
  }

  bool is_scratch(const SelectedOp& op, std::size_t w) const {
    return selected_.tensors[op.writes[w]].role == graph::Role::kScratch;
  }
  static bool goes_on(const Run& run) { return run.first_image > 0; }

  void add_up(const SelectedOp& op, const Run& run, std::size_t w, const std::vector<Cell>& found) {
    Cell c = 0;
    for (Cell& cell : writes_[w].cells) {
      if (!op.accumulates[w] && !goes_on(run)) cell = w;
      ++c;
      for (const Cell value : found) cell = mix(cell, mix(value, c));
    }
  }

  // A kernel may write its outputs before it has read its inputs, unless it promised not to.
  void spoil(const SelectedOp& op, const Run& run) {
    for (std::size_t w = 0; w < op.writes.size(); ++w) {
      const bool sum =
          op.images > 0 && writes_[w].image_cells == 0 && (!is_scratch(op, w) || op.carries);
      if (op.accumulates[w] || (sum && goes_on(run))) continue;
      const bool in_place = std::ranges::any_of(op.may_alias, [&](const graph::AliasHint& hint) {
        return static_cast<std::size_t>(hint.output) == w &&
               reads_[static_cast<std::size_t>(hint.input)].cells.data() == writes_[w].cells.data();
      });
      if (!in_place) std::ranges::fill(writes_[w].cells, kPoison);
    }
  }

  const graph::Selected& selected_;
  const Program& program_;
  Timing timing_;
  std::vector<Cell> arena_;
  std::array<std::vector<Cell>, 2> tiers_;
  std::vector<Value> reads_, writes_;
};

}  // namespace

std::optional<std::vector<std::uint64_t>> interpret(const graph::Selected& selected,
                                                    const Program& program, Timing timing) {
  try {
    return Interpreter(selected, program, timing).run();
  } catch (const Broken&) {
    return std::nullopt;
  }
}

bool gives(const graph::Selected& selected, const Program& program,
           const std::vector<std::uint64_t>& values) {
  for (const bool outs_late : {false, true}) {
    for (const bool ins_late : {false, true}) {
      if (interpret(selected, program, {outs_late, ins_late}) != values) return false;
    }
  }
  return true;
}

}  // namespace lantern::plan::test
