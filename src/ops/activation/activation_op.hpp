#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/activation/activation.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

struct ActivationParams final : graph::OpParams {
  explicit ActivationParams(Activation a) : activation(a) {}
  Activation activation;
  std::string describe() const override;
};

/// y = act(x); in place where backward does not need x.
extern const graph::OpDef kActivationForward;
/// dx (+)= dy * act'(.), in place over dy. Inputs dy and, by derivative_from_output, y or x.
extern const graph::OpDef kActivationBackward;

KernelChoice choose_activation_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_activation_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
