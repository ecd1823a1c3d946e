#pragma once

#include <cstdint>
#include <vector>

#include "plan/naive_planner.hpp"

namespace lantern::plan::test {

/// What is kept and moved as one: a tensor, or a part of its images.
struct NaivePiece {
  enum class State { kNone, kHere, kLeaving, kAway, kArriving, kDropped, kGone };

  std::uint32_t tensor = 0;
  std::int64_t first = 0, images = 0;
  std::vector<int> uses;     ///< steps, ascending
  std::vector<int> writers;  ///< steps
  State state = State::kNone;
  std::uint32_t buffer = kNone, slot = kNone;
  std::uint32_t copy = 0;  ///< that is under way
};

/// An op on some of its images.
struct NaiveStep {
  std::uint32_t op = 0;
  std::int64_t first = 0, images = 0;
  std::vector<std::size_t> pieces;  ///< by operand
};

/// What there is to run of one program, cut into chunks as the dice fall.
struct NaiveSteps {
  std::int64_t images = 0;  ///< of the mini-batch
  std::vector<NaivePiece> pieces;
  std::vector<NaiveStep> steps;
};
NaiveSteps naive_steps(const graph::Selected& selected, Rng& rng, const NaiveOptions& options,
                       graph::ProgramKind kind);

}  // namespace lantern::plan::test
