#include "plan/naive_placement.hpp"

#include <algorithm>

#include "plan/placement.hpp"

namespace lantern::plan::test {

using Kind = Instruction::Kind;

std::uint32_t root_of(const Program& program, std::uint32_t buffer) {
  while (program.buffers[buffer].alias_of != kNone) buffer = program.buffers[buffer].alias_of;
  return buffer;
}

void place(const InstructionList& list, Bytes base, bool packed, Program& program) {
  constexpr std::int64_t kNever = -1;
  std::vector<Interval> lives(program.buffers.size(), {0, kNever, kNever});
  std::vector<Interval> slot_lives(program.slots.size(), {0, kNever, kNever});
  std::size_t outs_done = 0, ins_done = 0;
  Bytes live = base;
  const auto place_of_wait = [&](std::int64_t at, std::size_t copies, std::size_t& done,
                                 const std::vector<Copy>& all) {
    for (; done < copies; ++done) slot_lives[all[done].slot].last = at;
  };
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    const auto [kind, index] = list.instructions[i];
    const auto at = static_cast<std::int64_t>(i);
    if (kind == Kind::kAlloc) {
      lives[index].bytes = program.buffers[index].bytes;
      lives[index].first = at;
      live += program.buffers[index].bytes;
      program.live_peak_bytes = std::max(program.live_peak_bytes, live);
    }
    if (kind == Kind::kFree) {
      lives[index].last = at;
      live -= program.buffers[index].bytes;
    }
    if (kind == Kind::kOut) {
      const auto [buffer, slot] = list.outs[index];
      slot_lives[slot].first = at;
      slot_lives[slot].bytes = program.slots[slot].bytes;
    }
    if (kind == Kind::kWaitOut) place_of_wait(at, index, outs_done, list.outs);
    if (kind == Kind::kWaitIn) place_of_wait(at, index, ins_done, list.ins);
  }
  const auto align = [&](const std::vector<Copy>& copies) {
    for (const Copy& copy : copies) {
      if (program.slots[copy.slot].tier != Tier::kFile) continue;
      Interval& life = lives[root_of(program, copy.buffer)];
      life.alignment = kFileAlignment;
      life.bytes = round_up(life.bytes, kFileAlignment);
    }
  };
  align(list.outs);
  align(list.ins);
  const auto lay = [&](std::vector<Interval>& all, Bytes from, auto set) {
    std::vector<Interval> some;
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].last == kNever) continue;
      if (!packed) all[i].first = all[i].last = 0;
      some.push_back(all[i]);
      which.push_back(i);
    }
    const Packing packing = pack(some);
    for (std::size_t i = 0; i < which.size(); ++i) set(which[i], from + packing.offsets[i]);
    return from + packing.bytes;
  };
  const Bytes top =
      lay(lives, base, [&](std::uint32_t i, Bytes at) { program.buffers[i].offset = at; });
  program.arena_bytes = std::max(program.arena_bytes, top);
  for (const Tier tier : {Tier::kHost, Tier::kFile}) {
    std::vector<Interval> some = slot_lives;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (program.slots[i].tier != tier) some[i].last = kNever;
      if (tier == Tier::kFile) some[i].alignment = kFileAlignment;
    }
    const Bytes end =
        lay(some, 0, [&](std::uint32_t i, Bytes at) { program.slots[i].offset = at; });
    Bytes& total = tier == Tier::kFile ? program.file_bytes : program.host_bytes;
    total = std::max(total, end);
  }
}

}  // namespace lantern::plan::test
