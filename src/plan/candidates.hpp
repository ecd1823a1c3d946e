#pragma once

#include <vector>

#include "plan/schedule.hpp"

namespace lantern::plan {

using Choices = std::vector<Choice>;  ///< by piece

/// Pieces that are worth evicting, in the order in which they are made.
std::vector<std::uint32_t> evictable_pieces(const Problem& problem);

/// Starting points of the search: what is cheaper to compute again than to move, at several prices
/// of the link (memory.md 3.2, price scan), and checkpoints with everything between them computed
/// again (segment seeds).
std::vector<Choices> base_choices(const Problem& problem, const Limits& limits,
                                  const std::vector<std::uint32_t>& evictable);

}  // namespace lantern::plan
