#include "plan/emit.hpp"

#include <algorithm>

#include "plan/placement.hpp"

namespace lantern::plan {

SchedulePlaces place(const Schedule& schedule, Bytes enough) {
  SchedulePlaces places;
  std::vector<Interval> intervals;
  intervals.reserve(schedule.blocks.size());
  for (const Block& block : schedule.blocks)
    intervals.push_back(
        {block.bytes, block.begin, block.end, block.file ? kFileAlignment : kAlignment});
  Packing packing = pack(intervals, enough);
  places.blocks = std::move(packing.offsets);
  places.arena_bytes = packing.bytes;
  places.slots.resize(schedule.slots.size());
  for (const Tier tier : {Tier::kHost, Tier::kFile}) {
    intervals.clear();
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
      const SlotLife& slot = schedule.slots[i];
      if (slot.tier != tier) continue;
      which.push_back(i);
      intervals.push_back(
          {slot.bytes, slot.begin, slot.end, tier == Tier::kFile ? kFileAlignment : kAlignment});
    }
    if (which.empty()) continue;
    const Packing slots = pack(intervals);
    for (std::size_t i = 0; i < which.size(); ++i) places.slots[which[i]] = slots.offsets[i];
    (tier == Tier::kFile ? places.file_bytes : places.host_bytes) = slots.bytes;
  }
  return places;
}

namespace {

using Kind = Instruction::Kind;

class Emitter {
 public:
  Emitter(const Problem& problem, const Schedule& schedule, const SchedulePlaces& places,
          InstructionList& list, Bytes base, Program& program)
      : problem_(problem),
        schedule_(schedule),
        list_(list),
        program_(program),
        first_buffer_(static_cast<std::uint32_t>(program.buffers.size())),
        first_slot_(static_cast<std::uint32_t>(program.slots.size())) {
    for (const Stay& stay : schedule.stays) {
      const Piece& piece = problem.pieces[stay.piece];
      const auto own = static_cast<std::uint32_t>(program.buffers.size());
      program.buffers.push_back(
          {.tensor = piece.tensor,
           .first_image = piece.first_image,
           .images = piece.images,
           .offset = base + places.blocks[stay.block],
           .bytes = piece.bytes,
           .alias_of = stay.alias_of == kNone ? own : first_buffer_ + stay.alias_of});
    }
    for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
      program.slots.push_back({schedule.slots[i].tier, places.slots[i], schedule.slots[i].bytes});
    }
  }

  void run() {
    sort_events();
    const auto entries = static_cast<std::int32_t>(schedule_.entries.size());
    for (std::int32_t e = 0; e < entries; ++e) {
      free_behind_copies(e);
      start_copies_in(e);
      wait_for_copies_in(e);
      for (; next_birth_ < births_.size() && begin_of(births_[next_birth_]) <= e; ++next_birth_)
        add(Kind::kAlloc, buffer(births_[next_birth_]));
      add_run(schedule_.entries[static_cast<std::size_t>(e)]);
      start_copies_out(e);
      for (; next_death_ < deaths_.size() && end_of(deaths_[next_death_]) <= e; ++next_death_)
        add(Kind::kFree, buffer(deaths_[next_death_]));
    }
    free_behind_copies(entries);
  }

 private:
  std::uint32_t buffer(std::uint32_t stay) const { return first_buffer_ + stay; }
  const Block& block_of(std::uint32_t stay) const {
    return schedule_.blocks[schedule_.stays[stay].block];
  }
  std::int32_t begin_of(std::uint32_t stay) const { return block_of(stay).begin; }
  std::int32_t end_of(std::uint32_t stay) const { return block_of(stay).end; }

  void add(Kind kind, std::size_t index) {
    list_.instructions.push_back({kind, static_cast<std::uint32_t>(index)});
  }

  // First stays of blocks by what begins and ends them; copies have lists of their own.
  void sort_events() {
    first_of_block_.assign(schedule_.blocks.size(), kNone);
    std::vector<bool> ends_with_copy(schedule_.blocks.size(), false);
    for (std::uint32_t i = 0; i < schedule_.stays.size(); ++i) {
      const Stay& stay = schedule_.stays[i];
      if (stay.alias_of == kNone) first_of_block_[stay.block] = i;
      if (stay.out >= 0) ends_with_copy[stay.block] = true;
    }
    for (const std::uint32_t stay : first_of_block_) {
      if (schedule_.stays[stay].in < 0) births_.push_back(stay);
      if (!ends_with_copy[schedule_.stays[stay].block]) deaths_.push_back(stay);
    }
    std::ranges::stable_sort(births_, {}, [&](std::uint32_t s) { return begin_of(s); });
    std::ranges::stable_sort(deaths_, {}, [&](std::uint32_t s) { return end_of(s); });
    for (std::uint32_t i = 0; i < schedule_.outs.size(); ++i) freed_.push_back(i);
    std::ranges::stable_sort(freed_, {}, [&](std::uint32_t i) { return schedule_.outs[i].freed; });
  }

  void wait(Kind kind, std::uint32_t& waited, std::uint32_t copies) {
    if (copies <= waited) return;
    waited = copies;
    add(kind, copies);
  }

  void free_behind_copies(std::int32_t e) {
    for (; next_freed_ < freed_.size() && schedule_.outs[freed_[next_freed_]].freed <= e;
         ++next_freed_) {
      const std::uint32_t out = freed_[next_freed_];
      wait(Kind::kWaitOut, waited_out_, out + 1);
      add(Kind::kFree, buffer(first_of_block_[schedule_.stays[schedule_.outs[out].stay].block]));
    }
  }

  void start_copies_in(std::int32_t e) {
    for (; started_in_ < schedule_.ins.size() && schedule_.ins[started_in_].issue <= e;
         ++started_in_) {
      const CopyIn& in = schedule_.ins[started_in_];
      // Its copy out is usually long done and waited for.
      for (std::uint32_t i = 0; i < schedule_.outs.size(); ++i) {
        if (schedule_.outs[i].slot == in.slot) wait(Kind::kWaitOut, waited_out_, i + 1);
      }
      add(Kind::kAlloc, buffer(in.stay));
      list_.ins.push_back({buffer(in.stay), first_slot_ + in.slot});
      add(Kind::kIn, started_in_);
    }
  }

  void wait_for_copies_in(std::int32_t e) {
    while (needed_in_ < schedule_.ins.size() && schedule_.ins[needed_in_].needed <= e) ++needed_in_;
    wait(Kind::kWaitIn, waited_in_, needed_in_);
  }

  void start_copies_out(std::int32_t e) {
    for (; started_out_ < schedule_.outs.size() && schedule_.outs[started_out_].after <= e;
         ++started_out_) {
      const CopyOut& out = schedule_.outs[started_out_];
      list_.outs.push_back({buffer(out.stay), first_slot_ + out.slot});
      add(Kind::kOut, started_out_);
    }
  }

  void add_run(const Entry& entry) {
    const Step& step = problem_.steps[entry.step];
    list_.runs.push_back({.op = step.op,
                          .first_image = step.first_image,
                          .images = step.images,
                          .first_operand = static_cast<std::uint32_t>(list_.operands.size()),
                          .again = entry.again});
    const std::span<const StepOperand> operands = problem_.operands_of(step);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::uint32_t stay = schedule_.stay_of[entry.first_stay + i];
      const std::uint32_t place =
          stay == kNone ? program_.persistent[problem_.pieces[operands[i].piece].tensor]
                        : buffer(stay);
      list_.operands.push_back({place, operands[i].skip});
    }
    add(Kind::kRun, list_.runs.size() - 1);
  }

  const Problem& problem_;
  const Schedule& schedule_;
  InstructionList& list_;
  Program& program_;
  std::uint32_t first_buffer_, first_slot_;
  std::vector<std::uint32_t> first_of_block_;
  std::vector<std::uint32_t> births_, deaths_, freed_;
  std::size_t next_birth_ = 0, next_death_ = 0, next_freed_ = 0;
  std::uint32_t started_in_ = 0, needed_in_ = 0, waited_in_ = 0, waited_out_ = 0;
  std::uint32_t started_out_ = 0;
};

}  // namespace

void emit(const Problem& problem, const Schedule& schedule, const SchedulePlaces& places,
          graph::ProgramKind kind, Bytes base, Program& program) {
  Emitter(problem, schedule, places, program.of(kind), base, program).run();
}

}  // namespace lantern::plan
