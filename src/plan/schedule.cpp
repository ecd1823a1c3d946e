#include "plan/schedule.hpp"

#include <algorithm>

namespace lantern::plan {

namespace {
constexpr int kDeepestRecomputation = 4000;
// Dropping everything after every use can make recomputation explode; such a schedule is of no use.
constexpr std::size_t kMostEntriesPerStep = 3;
}  // namespace

Scheduler::Scheduler(const Problem& problem, const Limits& limits)
    : problem_(problem), limits_(limits) {
  fresh_states_.reserve(problem.pieces.size());
  for (const Piece& piece : problem.pieces)
    fresh_states_.push_back({.next_use = piece.uses.data(),
                             .uses_end = piece.uses.data() + piece.uses.size(),
                             .complete = piece.complete,
                             .fixed = piece.fixed});
}

const Schedule& Scheduler::run(const std::vector<Choice>& choices) {
  choices_ = &choices;
  depth_ = 0;
  schedule_.entries.clear();
  schedule_.stay_of.clear();
  schedule_.stays.clear();
  schedule_.blocks.clear();
  schedule_.outs.clear();
  schedule_.ins.clear();
  schedule_.slots.clear();
  schedule_.possible = true;
  schedule_.recompute_seconds = 0;
  states_ = fresh_states_;
  choose_tiers();
  for (std::uint32_t step = 0; step < problem_.steps.size(); ++step) {
    step_ = step;
    if (!run_step(step, false)) {
      schedule_.possible = false;
      return schedule_;
    }
  }
  place_in_blocks();
  simulate(problem_, limits_, schedule_);
  return schedule_;
}

// With two tiers below, the host takes what was made last and waits least; the rest goes to the
// file.
void Scheduler::choose_tiers() {
  tiers_.assign(problem_.pieces.size(),
                limits_.host.exists() && limits_.host_memory > 0 ? Tier::kHost : Tier::kFile);
  if (!limits_.host.exists() || !limits_.disk.exists() || limits_.host_memory == 0 ||
      limits_.disk_memory == 0)
    return;
  Bytes held = 0;
  for (std::size_t piece = problem_.pieces.size(); piece-- > 0;) {
    const Choice choice = (*choices_)[piece];
    if (choice != Choice::kOffload && choice != Choice::kOffloadAlways) continue;
    held += round_up(problem_.pieces[piece].bytes, kAlignment);
    if (held > limits_.host_memory) tiers_[piece] = Tier::kFile;
  }
}

Tier Scheduler::tier_of(std::uint32_t piece) const { return tiers_[piece]; }

std::int32_t Scheduler::new_stay(std::uint32_t piece) {
  const auto entry = static_cast<std::int32_t>(schedule_.entries.size());
  schedule_.stays.push_back({.piece = piece, .begin = entry, .end = entry});
  return static_cast<std::int32_t>(schedule_.stays.size() - 1);
}

bool Scheduler::run_step(std::uint32_t step, bool again) {
  const std::span<const StepOperand> operands = problem_.operands_of(problem_.steps[step]);
  const auto is_missing = [&](const StepOperand& operand) {
    const PieceState& state = states_[operand.piece];
    return operand.needs && !state.fixed && state.stay < 0;
  };
  for (const StepOperand& operand : operands) states_[operand.piece].pins += operand.needs ? 1 : 0;
  // What must be computed comes first: copies in would wait in the arena for it.
  for (const StepOperand& operand : operands) {
    if (!is_missing(operand) || states_[operand.piece].slot >= 0) continue;
    if (!problem_.pieces[operand.piece].can_recompute || !recompute(operand.piece)) return false;
  }
  for (const StepOperand& operand : operands) {
    if (is_missing(operand)) fetch(operand.piece);
  }
  add_entry(step, again);
  return true;
}

void Scheduler::fetch(std::uint32_t piece) {
  PieceState& state = states_[piece];
  state.stay = new_stay(piece);
  schedule_.stays.back().in = static_cast<std::int32_t>(schedule_.ins.size());
  const auto entry = static_cast<std::int32_t>(schedule_.entries.size());
  schedule_.ins.push_back({static_cast<std::uint32_t>(state.stay),
                           static_cast<std::uint32_t>(state.slot), entry, entry});
  schedule_.slots[static_cast<std::size_t>(state.slot)].end = entry;
}

bool Scheduler::recompute(std::uint32_t piece) {
  if (++depth_ > kDeepestRecomputation ||
      schedule_.entries.size() > kMostEntriesPerStep * problem_.steps.size())
    return false;
  PieceState& state = states_[piece];
  ++state.pins;
  const Piece& made = problem_.pieces[piece];
  // The other outputs of the same runs are kept as well when they will be asked for.
  std::vector<std::uint32_t> rebuilt{piece};
  for (const StepOperand& operand : problem_.operands_of(problem_.steps[made.writers[0]])) {
    const Piece& other = problem_.pieces[operand.piece];
    const PieceState& other_state = states_[operand.piece];
    if (operand.writes && operand.piece != piece && !other.scratch && other_state.stay < 0 &&
        other_state.slot < 0 && !other_state.used_up() && other.writers == made.writers)
      rebuilt.push_back(operand.piece);
  }
  for (const std::uint32_t p : rebuilt) states_[p].rebuilding = true;
  bool possible = true;
  for (const std::uint32_t writer : made.writers) {
    possible = possible && run_step(writer, true);
    schedule_.recompute_seconds += problem_.steps[writer].seconds;
  }
  for (const std::uint32_t p : rebuilt) states_[p].rebuilding = false;
  --state.pins;
  --depth_;
  return possible;
}

void Scheduler::add_entry(std::uint32_t index, bool again) {
  const Step& step = problem_.steps[index];
  const auto entry = static_cast<std::int32_t>(schedule_.entries.size());
  const auto first_stay = static_cast<std::uint32_t>(schedule_.stay_of.size());
  const std::span<const StepOperand> operands = problem_.operands_of(step);
  for (const StepOperand& operand : operands) {
    PieceState& state = states_[operand.piece];
    if (state.fixed) {
      schedule_.stay_of.push_back(kNone);
      continue;
    }
    std::int32_t stay = state.stay;
    if (operand.writes && !operand.needs) {
      const bool throw_away = again && !state.rebuilding;
      if (throw_away || stay < 0) stay = new_stay(operand.piece);
      if (!throw_away) state.stay = stay;
    }
    Stay& used = schedule_.stays[static_cast<std::size_t>(stay)];
    used.end = entry;
    if (operand.writes) {
      used.written = entry;
      if (!again) state.slot = -1;  // the copy outside is of an older version
    }
    schedule_.stay_of.push_back(static_cast<std::uint32_t>(stay));
  }
  schedule_.entries.push_back({index, again, first_stay});
  for (const StepOperand& operand : operands) {
    if (operand.needs) --states_[operand.piece].pins;
  }
  for (const StepOperand& operand : operands) {
    PieceState& state = states_[operand.piece];
    if (state.fixed) continue;
    while (!again && !state.used_up() && *state.next_use <= step_) ++state.next_use;
    if (state.stay >= 0 && state.pins == 0 && !state.rebuilding && state.complete <= step_ &&
        leaves(operand.piece, again))
      evict(operand.piece);
  }
  work_in_place(step, first_stay);
}

// Whether a piece that an entry has just touched goes away behind it.
bool Scheduler::leaves(std::uint32_t index, bool again) {
  if (limits_.keep_everything) return false;
  const PieceState& state = states_[index];
  if (state.used_up()) return true;
  const std::uint32_t gap = *state.next_use - step_;
  switch ((*choices_)[index]) {
    case Choice::kKeep:
      return false;
    case Choice::kOffload:
    case Choice::kRecompute:
      return !again && gap > kShortGap && is_longest_gap(index);
    case Choice::kOffloadAlways:
    case Choice::kRecomputeAlways:
      return gap > kShortGap;
  }
  return false;
}

bool Scheduler::is_longest_gap(std::uint32_t index) const {
  const Piece& piece = problem_.pieces[index];
  return states_[index].next_use == piece.uses.data() + piece.gap_from + 1;
}

void Scheduler::evict(std::uint32_t index) {
  PieceState& state = states_[index];
  const Piece& piece = problem_.pieces[index];
  const auto stay_index = static_cast<std::uint32_t>(state.stay);
  Stay& stay = schedule_.stays[stay_index];
  const Choice choice = (*choices_)[index];
  const bool offload = choice == Choice::kOffload || choice == Choice::kOffloadAlways;
  if (offload && state.slot < 0 && !state.used_up()) {
    const Tier tier = tier_of(index);
    state.slot = static_cast<std::int32_t>(schedule_.slots.size());
    schedule_.slots.push_back(
        {tier, round_up(piece.bytes, tier == Tier::kFile ? kFileAlignment : kAlignment),
         stay.written, stay.written});
    stay.out = static_cast<std::int32_t>(schedule_.outs.size());
    schedule_.outs.push_back({.stay = stay_index,
                              .slot = static_cast<std::uint32_t>(state.slot),
                              .after = stay.written});
  }
  state.stay = -1;
}

// An output that begins here takes over the bytes of an input that ends here, where the kernel may
// work in place.
void Scheduler::work_in_place(const Step& step, std::uint32_t first_stay) {
  const auto entry = static_cast<std::int32_t>(schedule_.entries.size()) - 1;
  const std::span<const StepOperand> operands = problem_.operands_of(step);
  const auto inputs = static_cast<std::size_t>(
      std::ranges::find_if(operands, [](const StepOperand& o) { return o.writes; }) -
      operands.begin());
  for (const graph::AliasHint& hint : problem_.hints_of(step)) {
    const auto in = static_cast<std::size_t>(hint.input);
    const std::size_t out = inputs + static_cast<std::size_t>(hint.output);
    const std::uint32_t from = schedule_.stay_of[first_stay + in];
    const std::uint32_t to = schedule_.stay_of[first_stay + out];
    if (from == kNone || to == kNone) continue;
    const Stay& old = schedule_.stays[from];
    Stay& fresh = schedule_.stays[to];
    const Piece& old_piece = problem_.pieces[old.piece];
    const Piece& fresh_piece = problem_.pieces[fresh.piece];
    const auto same_stay = [&](std::uint32_t s) { return s == from; };
    const auto taken = [&](std::uint32_t s) {
      return s != kNone && schedule_.stays[s].alias_of == from;
    };
    const auto all_of = [&](const Piece& piece) {
      const std::int64_t images =
          piece.images > 0 ? piece.images : problem_.selected->tensors[piece.tensor].images;
      return images == step.images || step.images == 0 || images == 0;
    };
    const bool fits =
        fresh.alias_of == kNone && fresh.begin == entry && old.out < 0 &&
        states_[old.piece].stay != static_cast<std::int32_t>(from) &&
        fresh_piece.bytes <= old_piece.bytes && fresh_piece.images == old_piece.images &&
        fresh_piece.first_image == old_piece.first_image && all_of(fresh_piece) &&
        all_of(old_piece) &&
        std::none_of(schedule_.stay_of.begin() + first_stay, schedule_.stay_of.end(), taken) &&
        std::ranges::count_if(schedule_.stay_of.begin() + first_stay, schedule_.stay_of.end(),
                              same_stay) == 1;
    // A row of stays in one block is only as large as its first.
    if (!fits) continue;
    fresh.alias_of = from;
  }
}

void Scheduler::place_in_blocks() {
  for (Stay& stay : schedule_.stays) {
    if (stay.alias_of != kNone) {
      stay.block = schedule_.stays[stay.alias_of].block;
    } else {
      stay.block = static_cast<std::uint32_t>(schedule_.blocks.size());
      schedule_.blocks.push_back({.bytes = problem_.pieces[stay.piece].bytes, .begin = stay.begin});
    }
    Block& block = schedule_.blocks[stay.block];
    block.end = std::max(block.end, stay.end);
    const auto slot_of = [&](std::int32_t copy, const auto& copies) {
      return copy >= 0 &&
             schedule_.slots[copies[static_cast<std::size_t>(copy)].slot].tier == Tier::kFile;
    };
    block.file |= slot_of(stay.out, schedule_.outs) || slot_of(stay.in, schedule_.ins);
  }
  for (Block& block : schedule_.blocks) {
    if (limits_.keep_everything)
      block.end = static_cast<std::int32_t>(schedule_.entries.size()) - 1;
    block.bytes = round_up(block.bytes, block.file ? kFileAlignment : kAlignment);
  }
}

}  // namespace lantern::plan
