#include "plan/cost.hpp"

#include <algorithm>
#include <optional>

namespace lantern::plan {

namespace {

using graph::Selected;
using graph::SelectedOp;

// Parts of the peak that dense fp32 kernels reach.
constexpr double kWindowed = 0.85;   // convolutions larger than 1x1
constexpr double kPointwise = 0.70;  // 1x1 convolutions and matrix products
constexpr double kGrouped = 0.30;    // several groups: small products, much data movement

// The weights of a convolution, [OC, IC / groups, KH, KW].
std::optional<Shape> conv_weights(const Selected& selected, const SelectedOp& op) {
  const auto shape = [&](const std::vector<std::uint32_t>& operands, std::size_t at) {
    return operands.size() > at ? selected.tensors[operands[at]].shape : Shape{};
  };
  Shape weights;
  if (op.op == "conv_forward" || op.op == "conv_backward_data") {
    weights = shape(op.reads, 1);
  } else if (op.op == "conv_backward_weights") {
    weights = shape(op.writes, 0);
  }
  if (weights.rank() != 4) return std::nullopt;
  return weights;
}

double efficiency(const Selected& selected, const SelectedOp& op) {
  const std::optional<Shape> weights = conv_weights(selected, op);
  if (!weights) return kPointwise;  // matrix products; other kinds count no floating point work
  if (op.groups > 1) return kGrouped;
  return weights->h() * weights->w() > 1 ? kWindowed : kPointwise;
}

// Bytes that reach memory: everything read, everything written, sums read as well.
Bytes bytes_moved(const Selected& selected, const SelectedOp& op) {
  const auto counted = [&](std::uint32_t tensor) {
    const graph::SelectedTensor& entry = selected.tensors[tensor];
    return entry.role == graph::Role::kScratch ? 0 : entry.bytes;
  };
  Bytes bytes = 0;
  for (const std::uint32_t tensor : op.reads) bytes += counted(tensor);
  for (std::size_t i = 0; i < op.writes.size(); ++i)
    bytes += counted(op.writes[i]) * (i < op.accumulates.size() && op.accumulates[i] ? 2 : 1);
  return bytes;
}

}  // namespace

double op_seconds(const Selected& selected, const SelectedOp& op, const DeviceSpec& device) {
  const double arithmetic = op.flops / (device.flops_per_second * efficiency(selected, op));
  const double memory =
      static_cast<double>(bytes_moved(selected, op)) / device.memory_bytes_per_second;
  return std::max(arithmetic, memory);
}

void set_costs(Selected& selected, const DeviceSpec& device) {
  for (SelectedOp& op : selected.ops) {
    op.seconds = op_seconds(selected, op, device);
    op.fixed_seconds = 0;
  }
}

}  // namespace lantern::plan
