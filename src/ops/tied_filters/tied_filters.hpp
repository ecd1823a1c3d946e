#pragma once

#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/tied_filters/tied_filters_ref.hpp"

namespace lantern::ops {

using ref::FilterTie;

struct TiedFiltersParams final : graph::OpParams {
  FilterTie tie = FilterTie::kNone;
  float angle = 15;     ///< degrees, of sway
  bool centre = false;  ///< subtract the mean of every filter (grad_centr)
  std::int64_t filters = 1;
  std::int64_t size = 1;             ///< of a kernel
  graph::TensorId weights{};         ///< whose layout the gradient has
  std::int64_t first_iteration = 0;  ///< no update before this iteration
  std::string describe() const override;
  /// Filters are tied during the first half of a run.
  bool ties(const RunContext& run) const;
};

/// With u = gradient + momentum (0 when it is not given): while filters are tied, every part of u
/// is turned back and all parts become their mean; then every filter loses its mean if `centre`.
/// dst = u - momentum, so that the step behind it works with u. Inputs gradient[, momentum]; all
/// lie as the weights do. Darknet: averages four of the eight parts of stretch_sway, and centres
/// filters of certain lengths only (fault L49).
extern const graph::OpDef kFilterGradient;
/// While filters are tied, every part of the weights becomes what part 0 is under its
/// transformation. The output is changed in place.
extern const graph::OpDef kTieFilters;

KernelChoice choose_filter_gradient(const graph::Op& op, const SelectContext& context);
KernelChoice choose_tie_filters(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
