#pragma once

#include "plan/program.hpp"

namespace lantern::plan {

struct PlanOptions {
  /// Every tensor keeps bytes of its own to the end of its program, so that tests can read all of
  /// them afterwards.
  bool keep_everything = false;
};

/// Turns the selected ops into a program with a place for every byte: lifetimes, in-place reuse
/// where the kernels allow it, offline placement. Everything that backward reads is kept. Pure and
/// deterministic.
Program make_program(const graph::Selected& selected, const PlanOptions& options = {});

}  // namespace lantern::plan
