#include "plan/bound.hpp"

#include <algorithm>
#include <limits>

#include "plan/candidates.hpp"

namespace lantern::plan {

namespace {

// The first step that makes a gradient.
std::uint32_t turn_of(const Problem& problem) {
  for (std::uint32_t i = 0; i < problem.steps.size(); ++i) {
    for (const StepOperand& operand : problem.operands_of(problem.steps[i])) {
      const graph::Role role = problem.selected->tensors[problem.pieces[operand.piece].tensor].role;
      if (operand.writes &&
          (role == graph::Role::kGradient || role == graph::Role::kParameterGradient))
        return i;
    }
  }
  return static_cast<std::uint32_t>(problem.steps.size());
}

}  // namespace

double fastest_possible(const Problem& problem, const Schedule& unlimited, const Limits& limits) {
  double forward = 0;
  double backward = 0;
  const std::uint32_t turn = turn_of(problem);
  for (std::uint32_t i = 0; i < problem.steps.size(); ++i)
    (i < turn ? forward : backward) += problem.steps[i].seconds;
  const Bytes excess = unlimited.peak - limits.memory;
  if (excess <= 0) return forward + backward;
  // Cheapest first: what is computed again, as a fraction of the cost that the own runs have.
  std::vector<std::pair<double, double>> recomputable;  // seconds a byte, bytes
  for (const std::uint32_t p : evictable_pieces(problem)) {
    const Piece& piece = problem.pieces[p];
    if (!piece.can_recompute) continue;
    const auto bytes = static_cast<double>(piece.bytes);
    recomputable.emplace_back(piece.recompute_seconds / bytes, bytes);
  }
  std::ranges::sort(recomputable);
  const LinkSpec& link = limits.host.exists() ? limits.host : limits.disk;
  double best = std::numeric_limits<double>::max();
  double seconds = 0;
  auto moved = static_cast<double>(excess);
  for (std::size_t i = 0;; ++i) {
    if (moved <= 0) {
      best = std::min(best, forward + backward + seconds);
      break;
    }
    if (link.exists()) {
      best = std::min(best, std::max(forward, moved / link.out_bytes_per_second) +
                                std::max(backward + seconds, moved / link.in_bytes_per_second));
    }
    if (i == recomputable.size()) break;
    const double part = std::min(moved, recomputable[i].second);
    seconds += part * recomputable[i].first;
    moved -= part;
  }
  return best == std::numeric_limits<double>::max() ? forward + backward : best;
}

Bytes saved_bytes(const Problem& problem) {
  const std::uint32_t turn = turn_of(problem);
  Bytes saved = 0;
  for (const Piece& piece : problem.pieces) {
    if (piece.fixed || piece.scratch || piece.uses.empty()) continue;
    if (piece.uses.front() >= turn || piece.uses.back() < turn) continue;
    // What a convolution makes costs arithmetic; the rest is passes over memory.
    const graph::SelectedOp& op = problem.selected->ops[problem.steps[piece.writers[0]].op];
    const bool cheap = piece.can_recompute && op.flops < 2 * static_cast<double>(op.bytes_touched);
    if (!cheap) saved += piece.bytes;
  }
  return saved;
}

}  // namespace lantern::plan
