#include "plan/problem.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "plan/cost.hpp"

namespace lantern::plan {

namespace {

using graph::Selected;
using graph::SelectedOp;
using graph::SelectedTensor;

class Builder {
 public:
  Builder(const Selected& selected, std::span<const std::uint32_t> ops,
          const std::vector<Segment>& segments, const std::vector<int>& chunks, double op_seconds)
      : selected_(selected),
        ops_(ops),
        chunks_(chunks),
        op_seconds_(op_seconds),
        tensor_chunks_(selected.tensors.size(), std::numeric_limits<int>::max()),
        first_piece_(selected.tensors.size(), kNone) {
    problem_.selected = &selected;
    problem_.segments = segments;
  }

  Problem run() {
    for (std::size_t s = 0; s < problem_.segments.size(); ++s) limit_tensors(s);
    for (std::size_t s = 0; s < problem_.segments.size(); ++s) add_segment(s);
    for (Piece& piece : problem_.pieces) finish(piece);
    return std::move(problem_);
  }

 private:
  template <typename Body>
  void for_each_tensor(const Segment& segment, Body body) const {
    for (std::uint32_t position = segment.first; position <= segment.last; ++position) {
      const SelectedOp& op = selected_.ops[ops_[position]];
      std::ranges::for_each(op.reads, body);
      std::ranges::for_each(op.writes, body);
    }
  }

  bool divides(std::uint32_t tensor) const {
    const SelectedTensor& info = selected_.tensors[tensor];
    return info.images > 0 && !graph::is_persistent(info.role);
  }

  // A tensor is cut as coarsely as the coarsest segment that touches it.
  void limit_tensors(std::size_t s) {
    const int chunks = problem_.segments[s].images == 0 ? 1 : chunks_[s];
    for_each_tensor(problem_.segments[s], [&](std::uint32_t tensor) {
      tensor_chunks_[tensor] = std::min(tensor_chunks_[tensor], chunks);
    });
  }

  std::vector<std::int64_t> ends_of_tensor(std::uint32_t tensor) const {
    return chunk_ends(selected_.tensors[tensor].images, tensor_chunks_[tensor]);
  }

  void add_segment(std::size_t s) {
    const Segment& segment = problem_.segments[s];
    if (segment.images == 0 || segment.most_chunks == 1 || chunks_[s] == 1) {
      for (std::uint32_t position = segment.first; position <= segment.last; ++position)
        add_step(ops_[position], s, 0, segment.images);
      return;
    }
    std::vector<std::int64_t> ends = chunk_ends(segment.images, chunks_[s]);
    for_each_tensor(segment, [&](std::uint32_t tensor) {
      if (!divides(tensor)) return;
      const std::vector<std::int64_t> more = ends_of_tensor(tensor);
      ends.insert(ends.end(), more.begin(), more.end());
    });
    std::ranges::sort(ends);
    const auto rest = std::ranges::unique(ends);
    ends.erase(rest.begin(), rest.end());
    std::int64_t first = 0;
    for (const std::int64_t end : ends) {
      for (std::uint32_t position = segment.first; position <= segment.last; ++position)
        add_step(ops_[position], s, first, end - first);
      first = end;
    }
  }

  std::uint32_t new_piece(std::uint32_t tensor, std::int64_t first, std::int64_t images,
                          Bytes bytes) {
    const graph::Role role = selected_.tensors[tensor].role;
    Piece piece{.tensor = tensor, .first_image = first, .images = images, .bytes = bytes};
    piece.fixed = graph::is_persistent(role);
    piece.scratch = role == graph::Role::kScratch;
    problem_.pieces.push_back(std::move(piece));
    return static_cast<std::uint32_t>(problem_.pieces.size() - 1);
  }

  // The piece that holds an image; pieces of a tensor are made together, at its first use.
  std::uint32_t piece_of(std::uint32_t tensor, std::int64_t image) {
    const SelectedTensor& info = selected_.tensors[tensor];
    if (first_piece_[tensor] == kNone) {
      first_piece_[tensor] = static_cast<std::uint32_t>(problem_.pieces.size());
      const int chunks = divides(tensor) ? tensor_chunks_[tensor] : 1;
      if (chunks == 1) {
        new_piece(tensor, 0, 0, info.bytes);
      } else {
        std::int64_t first = 0;
        for (const std::int64_t end : ends_of_tensor(tensor)) {
          new_piece(tensor, first, end - first, info.bytes / info.images * (end - first));
          first = end;
        }
      }
    }
    std::uint32_t piece = first_piece_[tensor];
    while (problem_.pieces[piece].images > 0 &&
           image >= problem_.pieces[piece].first_image + problem_.pieces[piece].images) {
      ++piece;
    }
    return piece;
  }

  void add_step(std::uint32_t index, std::size_t segment, std::int64_t first, std::int64_t images) {
    const SelectedOp& op = selected_.ops[index];
    Step step{.op = index,
              .first_image = first,
              .images = images,
              .segment = static_cast<std::uint32_t>(segment),
              .first_operand = static_cast<std::uint32_t>(problem_.operands.size())};
    step.seconds = run_seconds(op, images, op_seconds_);
    const auto number = static_cast<std::uint32_t>(problem_.steps.size());
    const auto add = [&](std::uint32_t tensor, bool writes, bool accumulates) {
      const SelectedTensor& info = selected_.tensors[tensor];
      StepOperand operand{.writes = writes};
      if (info.role == graph::Role::kScratch && !op.carries) {
        operand.piece = new_piece(tensor, 0, 0, info.bytes);
      } else {
        operand.piece = piece_of(tensor, first);
      }
      Piece& piece = problem_.pieces[operand.piece];
      if (info.images > 0 && images > 0)
        operand.skip = info.bytes / info.images * (first - piece.first_image);
      operand.needs = !writes || accumulates;
      if (piece.uses.empty() || piece.uses.back() != number) piece.uses.push_back(number);
      if (writes && (piece.writers.empty() || piece.writers.back() != number))
        piece.writers.push_back(number);
      if (writes && !operand.needs) piece.complete = number;
      problem_.operands.push_back(operand);
    };
    for (const std::uint32_t tensor : op.reads) add(tensor, false, false);
    for (std::size_t i = 0; i < op.writes.size(); ++i) add(op.writes[i], true, op.accumulates[i]);
    step.operand_count = static_cast<std::uint32_t>(problem_.operands.size()) - step.first_operand;
    problem_.steps.push_back(step);
  }

  // Everything that the steps make must be safe to make twice.
  bool can_run_again(const Step& step) const {
    const SelectedOp& op = selected_.ops[step.op];
    if (op.carries) return false;
    // It must find what it found before: persistent values that do not change during the program,
    // transients that are written once.
    for (const std::uint32_t read : op.reads) {
      const int most = graph::is_persistent(selected_.tensors[read].role) ? 0 : 1;
      if (writers_of(read) > most) return false;
    }
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      const SelectedTensor& info = selected_.tensors[op.writes[i]];
      if (op.accumulates[i] || graph::is_persistent(info.role)) return false;
      if (info.images == 0 && info.role != graph::Role::kScratch && op.images > 0) return false;
      // Added to or written again later: making it again would give an earlier value.
      if (info.role != graph::Role::kScratch && writers_of(op.writes[i]) != 1) return false;
    }
    return true;
  }

  int writers_of(std::uint32_t tensor) const {
    if (writer_count_.empty()) {
      writer_count_.assign(selected_.tensors.size(), 0);
      for (const std::uint32_t op : ops_) {
        for (const std::uint32_t written : selected_.ops[op].writes) ++writer_count_[written];
      }
    }
    return writer_count_[tensor];
  }

  void finish(Piece& piece) {
    if (piece.fixed || piece.scratch || piece.uses.empty()) return;
    std::uint32_t longest = 0;
    for (std::uint32_t i = 0; i + 1 < piece.uses.size(); ++i) {
      if (piece.uses[i + 1] - piece.uses[i] > longest) {
        longest = piece.uses[i + 1] - piece.uses[i];
        piece.gap_from = i;
      }
    }
    piece.can_recompute = !piece.writers.empty();
    for (const std::uint32_t writer : piece.writers) {
      const Step& step = problem_.steps[writer];
      piece.can_recompute &= can_run_again(step);
      piece.recompute_seconds += step.seconds;
    }
  }

  const Selected& selected_;
  std::span<const std::uint32_t> ops_;
  const std::vector<int>& chunks_;
  double op_seconds_;
  std::vector<int> tensor_chunks_;
  std::vector<std::uint32_t> first_piece_;
  mutable std::vector<int> writer_count_;
  Problem problem_;
};

}  // namespace

Problem make_problem(const Selected& selected, std::span<const std::uint32_t> ops,
                     const std::vector<Segment>& segments, const std::vector<int>& chunks,
                     double op_seconds) {
  LANTERN_ASSERT(segments.size() == chunks.size(), "every segment has its chunks");
  return Builder(selected, ops, segments, chunks, op_seconds).run();
}

}  // namespace lantern::plan
