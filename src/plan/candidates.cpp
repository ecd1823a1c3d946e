#include "plan/candidates.hpp"

#include <algorithm>

namespace lantern::plan {

namespace {

double price(const Piece& piece) {
  return piece.recompute_seconds / static_cast<double>(std::max<Bytes>(1, piece.bytes));
}

}  // namespace

std::vector<std::uint32_t> evictable_pieces(const Problem& problem) {
  Bytes largest = 0;
  for (const Piece& piece : problem.pieces) {
    if (!piece.fixed) largest = std::max(largest, piece.bytes);
  }
  std::vector<std::uint32_t> pieces;
  for (std::uint32_t i = 0; i < problem.pieces.size(); ++i) {
    const Piece& piece = problem.pieces[i];
    if (piece.fixed || piece.scratch || piece.uses.size() < 2 || piece.bytes < largest / 4096)
      continue;
    if (piece.uses[piece.gap_from + 1] - piece.uses[piece.gap_from] > kShortGap)
      pieces.push_back(i);
  }
  std::ranges::stable_sort(pieces, {}, [&](std::uint32_t p) { return problem.pieces[p].uses[0]; });
  return pieces;
}

std::vector<Choices> base_choices(const Problem& problem, const Limits& limits,
                                  const std::vector<std::uint32_t>& evictable) {
  const LinkSpec& link = limits.host.exists() ? limits.host : limits.disk;
  const bool moves = link.exists();
  std::vector<double> prices;  // seconds a byte below which a piece is computed again
  if (moves) {
    for (const double lambda : {0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.5, 5.0, 1e9})
      prices.push_back(lambda / link.out_bytes_per_second);
  } else {
    std::vector<double> own;
    for (const std::uint32_t p : evictable) {
      if (problem.pieces[p].can_recompute) own.push_back(price(problem.pieces[p]));
    }
    std::ranges::sort(own);
    for (int i = 1; i <= 10 && !own.empty(); ++i)
      prices.push_back(own[(own.size() - 1) * static_cast<std::size_t>(i) / 10] * 1.0001);
  }
  std::vector<Choices> all;
  const auto add = [&](bool always, auto recomputes) {
    Choices choices(problem.pieces.size(), Choice::kKeep);
    for (const std::uint32_t p : evictable) {
      const Piece& piece = problem.pieces[p];
      if (piece.can_recompute && recomputes(piece)) {
        choices[p] = always ? Choice::kRecomputeAlways : Choice::kRecompute;
      } else if (moves) {
        choices[p] = always ? Choice::kOffloadAlways : Choice::kOffload;
      }
    }
    all.push_back(std::move(choices));
  };
  for (const bool always : {false, true}) {
    for (const double limit : prices)
      add(always, [&](const Piece& piece) { return price(piece) < limit; });
    if (prices.empty()) continue;
    // Checkpoints: of the pieces that are expensive to make, every g-th stays.
    for (const std::uint32_t g : {2U, 4U, 8U, 16U}) {
      std::uint32_t rank = 0;
      const double cheap = prices[prices.size() / 2];
      add(always, [&](const Piece& piece) { return price(piece) < cheap || rank++ % g != 0; });
    }
  }
  return all;
}

}  // namespace lantern::plan
