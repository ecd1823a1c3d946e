#pragma once

#include "core/rng.hpp"
#include "plan/program.hpp"

namespace lantern::plan::test {

/// What a naive plan does; each as the dice fall.
struct NaiveOptions {
  bool chunks = true;  ///< ops run on parts of the images, several ops per part where that holds
  bool evict = true;   ///< copies out and in again, to both tiers, some early and some late
  bool recompute = true;
  bool in_place = true;
  bool pack = true;  ///< else every buffer has bytes of its own
};

/// A plan that holds and is no good: an independent source of plans for tests.
Program naive_program(const graph::Selected& selected, Rng& rng, const NaiveOptions& options);

}  // namespace lantern::plan::test
