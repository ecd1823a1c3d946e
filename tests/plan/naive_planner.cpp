#include "plan/naive_planner.hpp"

#include <algorithm>

#include "plan/naive_placement.hpp"
#include "plan/naive_steps.hpp"

namespace lantern::plan::test {

namespace {

using graph::Role;
using graph::Selected;
using graph::SelectedOp;
using Piece = NaivePiece;
using State = NaivePiece::State;
using Step = NaiveStep;
using Kind = Instruction::Kind;

/// One program of the network.
class Naive {
 public:
  Naive(const Selected& selected, Rng& rng, const NaiveOptions& options, Program& program,
        graph::ProgramKind kind)
      : selected_(selected),
        rng_(rng),
        options_(options),
        program_(program),
        list_(program.of(kind)),
        kind_(kind) {}

  void run() {
    NaiveSteps work = naive_steps(selected_, rng_, options_, kind_);
    images_ = work.images;
    pieces_ = std::move(work.pieces);
    steps_ = std::move(work.steps);
    for (Piece& piece : pieces_) {
      if (!persistent(piece.tensor)) continue;
      piece.state = State::kHere;
      piece.buffer = program_.persistent[piece.tensor];
    }
    for (int s = 0; s < static_cast<int>(steps_.size()); ++s) execute(s);
    wait(Kind::kWaitOut, static_cast<std::uint32_t>(list_.outs.size()));
  }

 private:
  bool chance(float probability) { return rng_.uniform() < probability; }
  const graph::SelectedTensor& info(const Piece& p) const { return selected_.tensors[p.tensor]; }
  bool persistent(std::uint32_t tensor) const {
    return graph::is_persistent(selected_.tensors[tensor].role);
  }
  Bytes bytes(const Piece& p) const {
    return p.images == 0 ? info(p).bytes : info(p).bytes / info(p).images * p.images;
  }

  // ---- instructions ----

  void add(Kind kind, std::size_t index) {
    list_.instructions.push_back({kind, static_cast<std::uint32_t>(index)});
  }
  void wait(Kind kind, std::uint32_t copies) {
    std::uint32_t& done = kind == Kind::kWaitOut ? outs_done_ : ins_done_;
    if (copies <= done) return;
    done = copies;
    add(kind, copies);
  }

  std::uint32_t root(std::uint32_t buffer) const { return root_of(program_, buffer); }
  std::uint32_t new_buffer(const Piece& p, std::uint32_t alias_of) {
    const auto index = static_cast<std::uint32_t>(program_.buffers.size());
    program_.buffers.push_back({.tensor = p.tensor,
                                .first_image = p.first,
                                .images = p.images,
                                .bytes = bytes(p),
                                .alias_of = alias_of});
    if (alias_of == kNone) add(Kind::kAlloc, index);
    return index;
  }
  void free(std::uint32_t buffer) { add(Kind::kFree, root(buffer)); }

  void bring(std::size_t piece, int s) {
    touched_.push_back(piece);
    switch (pieces_[piece].state) {
      case State::kNone:
      case State::kHere:
      case State::kGone:
        break;
      case State::kLeaving:
        wait(Kind::kWaitOut, pieces_[piece].copy + 1);
        if (rng_.coin()) {  // it stays after all, and its copy is clean
          pieces_[piece].state = State::kHere;
          break;
        }
        free(pieces_[piece].buffer);
        [[fallthrough]];
      case State::kAway:
        start_in(pieces_[piece]);
        [[fallthrough]];
      case State::kArriving:
        wait(Kind::kWaitIn, pieces_[piece].copy + 1);
        pieces_[piece].state = State::kHere;
        break;
      case State::kDropped:
        make_again(piece, s);
        break;
    }
  }

  void start_in(Piece& p) {
    p.buffer = new_buffer(p, kNone);
    p.copy = static_cast<std::uint32_t>(list_.ins.size());
    list_.ins.push_back({p.buffer, p.slot});
    add(Kind::kIn, p.copy);
    p.state = State::kArriving;
  }

  void make_again(std::size_t piece, int s) {
    const std::vector<int> producers = pieces_[piece].writers;
    for (const int producer : producers) {
      const SelectedOp& op = selected_.ops[steps_[static_cast<std::size_t>(producer)].op];
      for (std::size_t i = 0; i < op.reads.size(); ++i)
        bring(steps_[static_cast<std::size_t>(producer)].pieces[i], s);
    }
    pieces_[piece].buffer = new_buffer(pieces_[piece], kNone);
    pieces_[piece].state = State::kHere;
    for (const int producer : producers) {
      const Step& step = steps_[static_cast<std::size_t>(producer)];
      const std::size_t reads = selected_.ops[step.op].reads.size();
      std::vector<std::uint32_t> buffers, thrown_away;
      for (std::size_t i = 0; i < step.pieces.size(); ++i) {
        if (i >= reads && step.pieces[i] != piece) {
          thrown_away.push_back(new_buffer(pieces_[step.pieces[i]], kNone));
          buffers.push_back(thrown_away.back());
        } else {
          buffers.push_back(pieces_[step.pieces[i]].buffer);
        }
      }
      add_run(step, buffers, true);
      for (const std::uint32_t buffer : thrown_away) free(buffer);
    }
  }

  void add_run(const Step& step, const std::vector<std::uint32_t>& buffers, bool again) {
    list_.runs.push_back({.op = step.op,
                          .first_image = step.first,
                          .images = step.images,
                          .first_operand = static_cast<std::uint32_t>(list_.operands.size()),
                          .again = again});
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const graph::SelectedTensor& t = selected_.tensors[pieces_[step.pieces[i]].tensor];
      const Bytes image = t.images > 0 && step.images > 0 ? t.bytes / t.images : 0;
      list_.operands.push_back(
          {buffers[i], image * (step.first - program_.buffers[buffers[i]].first_image)});
    }
    add(Kind::kRun, list_.runs.size() - 1);
  }

  // ---- the walk ----

  void execute(int s) {
    const Step step = steps_[static_cast<std::size_t>(s)];
    const SelectedOp& op = selected_.ops[step.op];
    touched_.clear();
    prefetch();
    for (std::size_t i = 0; i < op.reads.size(); ++i) bring(step.pieces[i], s);
    for (std::size_t i = op.reads.size(); i < step.pieces.size(); ++i) {
      const std::size_t piece = step.pieces[i];
      bring(piece, s);
      if (pieces_[piece].state == State::kNone) {
        pieces_[piece].buffer = new_buffer(pieces_[piece], taken_over(step, i, s));
        pieces_[piece].state = State::kHere;
      }
      pieces_[piece].slot = kNone;
    }
    std::vector<std::uint32_t> buffers;
    for (const std::size_t piece : step.pieces) buffers.push_back(pieces_[piece].buffer);
    add_run(step, buffers, false);
    std::ranges::sort(touched_);
    touched_.erase(std::ranges::unique(touched_).begin(), touched_.end());
    const std::vector<std::size_t> touched = touched_;
    for (const std::size_t piece : touched) leave(piece, s);
    // Some of what is on its way out is gone now.
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
      if (pieces_[piece].state == State::kLeaving && chance(0.3F)) let_go(pieces_[piece]);
    }
  }

  void let_go(Piece& p) {
    wait(Kind::kWaitOut, p.copy + 1);
    free(p.buffer);
    p.state = State::kAway;
  }

  void prefetch() {
    for (Piece& p : pieces_) {
      if (p.state == State::kAway && chance(0.1F)) start_in(p);
    }
  }

  int next_use(const Piece& p, int s) const {
    const auto next = std::ranges::upper_bound(p.uses, s);
    return next == p.uses.end() ? -1 : *next;
  }

  // The input whose bytes the output may have, or none.
  std::uint32_t taken_over(const Step& step, std::size_t operand, int s) {
    const SelectedOp& op = selected_.ops[step.op];
    const Piece& out = pieces_[step.pieces[operand]];
    if (!options_.in_place) return kNone;
    for (const graph::AliasHint& hint : op.may_alias) {
      if (static_cast<std::size_t>(hint.output) + op.reads.size() != operand) continue;
      Piece& in = pieces_[step.pieces[static_cast<std::size_t>(hint.input)]];
      if (in.state != State::kHere || persistent(in.tensor) || next_use(in, s) >= 0) continue;
      if (bytes(out) > program_.buffers[root(in.buffer)].bytes) continue;
      if (std::ranges::count(op.reads, in.tensor) != 1) continue;
      const std::int64_t run = step.images;
      if (run > 0 && run != (in.images > 0 ? in.images : images_)) continue;
      if (run > 0 && run != (out.images > 0 ? out.images : images_)) continue;
      in.state = State::kGone;
      return in.buffer;
    }
    return kNone;
  }

  // Nobody is in the middle of writing it.
  bool complete(const Piece& p, int s) const {
    std::vector<std::uint32_t> begun;
    for (const int w : p.writers) {
      const std::uint32_t op = steps_[static_cast<std::size_t>(w)].op;
      if (w <= s) begun.push_back(op);
      if (w > s && std::ranges::find(begun, op) != begun.end()) return false;
    }
    return true;
  }

  // Whether it can be made again for step t; if so its inputs are kept for that.
  bool drop(Piece& p, int t) {
    std::vector<std::size_t> inputs;
    for (const int w : p.writers) {
      const Step& step = steps_[static_cast<std::size_t>(w)];
      const SelectedOp& op = selected_.ops[step.op];
      if (op.carries) return false;
      for (std::size_t i = 0; i < op.writes.size(); ++i) {
        const graph::SelectedTensor& out = selected_.tensors[op.writes[i]];
        if (op.accumulates[i] || persistent(op.writes[i])) return false;
        if (op.images > 0 && out.images == 0 && out.role != Role::kScratch) return false;
      }
      for (std::size_t i = 0; i < op.reads.size(); ++i) {
        const Piece& in = pieces_[step.pieces[i]];
        if (persistent(in.tensor)) {
          if (!in.writers.empty()) return false;
          continue;
        }
        if (in.state == State::kGone || in.uses.back() < t) return false;
        // Written by one op only, so that it still is what it was.
        for (const int other : in.writers) {
          if (steps_[static_cast<std::size_t>(other)].op !=
              steps_[static_cast<std::size_t>(in.writers[0])].op)
            return false;
        }
        inputs.push_back(step.pieces[i]);
      }
    }
    for (const int w : p.writers) {
      if (steps_[static_cast<std::size_t>(w)].op !=
          steps_[static_cast<std::size_t>(p.writers[0])].op)
        return false;
    }
    for (const std::size_t in : inputs) {
      auto& uses = pieces_[in].uses;
      if (!std::ranges::binary_search(uses, t)) uses.insert(std::ranges::upper_bound(uses, t), t);
    }
    return true;
  }

  void leave(std::size_t piece, int s) {
    Piece& p = pieces_[piece];
    if (persistent(p.tensor) || p.state != State::kHere) return;
    const int next = next_use(p, s);
    if (next < 0) {
      free(p.buffer);
      p.state = State::kGone;
      return;
    }
    if (info(p).role == Role::kScratch || next <= s + 1 || !complete(p, s)) return;
    if (options_.recompute && chance(0.3F) && drop(p, next)) {
      free(p.buffer);
      p.state = State::kDropped;
    } else if (options_.evict && chance(0.4F)) {
      if (p.slot != kNone) {  // its copy is clean
        free(p.buffer);
        p.state = State::kAway;
        return;
      }
      p.slot = static_cast<std::uint32_t>(program_.slots.size());
      const Tier tier = rng_.coin() ? Tier::kHost : Tier::kFile;
      program_.slots.push_back(
          {.tier = tier, .bytes = round_up(bytes(p), tier == Tier::kFile ? kFileAlignment : 1)});
      p.copy = static_cast<std::uint32_t>(list_.outs.size());
      list_.outs.push_back({p.buffer, p.slot});
      add(Kind::kOut, p.copy);
      p.state = State::kLeaving;
      if (chance(0.3F)) let_go(p);
    }
  }

  const Selected& selected_;
  Rng& rng_;
  NaiveOptions options_;
  Program& program_;
  InstructionList& list_;
  graph::ProgramKind kind_;
  std::int64_t images_ = 0;
  std::vector<Piece> pieces_;
  std::vector<Step> steps_;
  std::vector<std::size_t> touched_;
  std::uint32_t outs_done_ = 0, ins_done_ = 0;
};

}  // namespace

Program naive_program(const Selected& selected, Rng& rng, const NaiveOptions& options) {
  Program program;
  program.persistent.assign(selected.tensors.size(), kNone);
  for (std::uint32_t t = 0; t < selected.tensors.size(); ++t) {
    if (!graph::is_persistent(selected.tensors[t].role)) continue;
    program.persistent[t] = static_cast<std::uint32_t>(program.buffers.size());
    program.buffers.push_back(
        {.tensor = t, .offset = program.persistent_bytes, .bytes = selected.tensors[t].bytes});
    program.persistent_bytes += round_up(selected.tensors[t].bytes, kAlignment);
  }
  program.persistent_bytes = round_up(program.persistent_bytes, kFileAlignment);
  program.live_peak_bytes = program.arena_bytes = program.persistent_bytes;
  for (int kind = 0; kind < graph::kProgramKinds; ++kind) {
    Naive(selected, rng, options, program, static_cast<graph::ProgramKind>(kind)).run();
    place(program.programs[static_cast<std::size_t>(kind)], program.persistent_bytes, options.pack,
          program);
  }
  for (Buffer& buffer : program.buffers) {
    if (buffer.alias_of != kNone)
      buffer.offset = program.buffers[root_of(program, buffer.alias_of)].offset;
  }
  return program;
}

}  // namespace lantern::plan::test
