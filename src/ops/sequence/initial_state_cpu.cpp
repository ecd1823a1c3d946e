#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ops/sequence/initial_state.hpp"

namespace lantern::ops {

std::int64_t SequenceLength::at(std::int64_t iteration) const {
  double parts = sequential;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] > iteration) break;
    parts *= static_cast<double>(factors[i]);
  }
  const auto whole = static_cast<std::int64_t>(
      std::clamp(parts, 1.0, static_cast<double>(std::max(1, subdivisions))));
  return std::max<std::int64_t>(1, subdivisions / whole);
}

namespace {
std::vector<graph::TensorType> infer(const graph::OpParams& params,
                                     std::span<const graph::TensorType> /*inputs*/) {
  return {{static_cast<const InitialStateParams&>(params).shape, DType::kF32}};
}
}  // namespace

std::string InitialStateParams::describe() const {
  std::string text = shape.to_string();
  if (!length) return text;
  text += fmt::format(" subdivisions={}/{}", length->subdivisions, length->sequential);
  for (std::size_t i = 0; i < length->steps.size(); ++i)
    text += fmt::format(" {}:{:g}", length->steps[i], length->factors[i]);
  return text;
}

const graph::OpDef kInitialState{.name = "initial_state", .infer = infer};

KernelChoice choose_initial_state(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<InitialStateParams>();
  const bool vector = params.shape.h() * params.shape.w() == 1;
  Layout layout{.block = vector ? 1 : context.block};
  if (!op.inputs.empty()) layout = context.layout(op.inputs[0]).value_or(layout);
  const Bytes bytes = layout.bytes(params.shape, DType::kF32);
  if (op.inputs.empty()) {
    const std::int64_t images = params.shape.n();
    return {.name = "cpu",
            .outputs = {layout},
            .images = images,
            .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
              std::memset(o[0], 0, static_cast<std::size_t>(bytes / images * run.images));
            })};
  }
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .kernel = make_kernel(
              [bytes, length = params.length](std::span<void* const> o, const RunContext& run) {
                const bool begins = length && run.subdivision % length->at(run.iteration) == 0;
                if (begins) {
                  std::memset(o[1], 0, static_cast<std::size_t>(bytes));
                } else {
                  std::memcpy(o[1], o[0], static_cast<std::size_t>(bytes));
                }
              })};
}

}  // namespace lantern::ops
