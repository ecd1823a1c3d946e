#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct ExcitationParams final : graph::OpParams {
  std::int64_t until = 1;  ///< last iteration; 1: half of the run
  int max_truths = 200;    ///< truth rows an image, 6 floats each: x y w h class track
  std::string describe() const override;
};

/// Share of the mean that is added in an iteration; 0 outside the time of the excitation.
float excitation_share(const ExcitationParams& params, const RunContext& run);

/// Training (assisted excitation, Derakhshani et al. 2019): dst = src + share * the mean of the
/// channels of a cell, in cells that a true box covers. Inputs src [N,C,H,W], truth [N, max*6]. The
/// gradient passes as if nothing had been added, as in Darknet.
/// Darknet: reads truth rows of five floats where they have six (fault L36).
extern const graph::OpDef kExcitation;

KernelChoice choose_excitation(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
