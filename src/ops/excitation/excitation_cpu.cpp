#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/blocks.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/excitation/excitation.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  return {inputs[0]};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kCopy, op.params, {*dy}, {builder.target(op.inputs[0])});
}

constexpr int kTruthFloats = 6;

// First and last cell that [centre - size / 2, centre + size / 2] touches.
bool covers(float centre, float size, std::int64_t cell, std::int64_t cells) {
  const auto extent = static_cast<float>(cells);
  const auto at = static_cast<float>(cell);
  return at >= std::floor((centre - size / 2) * extent) &&
         at < std::ceil((centre + size / 2) * extent);
}

bool is_excited(const float* rows, int count, std::int64_t y, std::int64_t x, const Shape& shape) {
  for (int t = 0; t < count && rows[0] != 0; ++t, rows += kTruthFloats) {
    if (covers(rows[0], rows[2], x, shape.w()) && covers(rows[1], rows[3], y, shape.h()))
      return true;
  }
  return false;
}

}  // namespace

std::string ExcitationParams::describe() const { return fmt::format("until={}", until); }

float excitation_share(const ExcitationParams& params, const RunContext& run) {
  const auto passed = static_cast<double>(run.iteration - 1);  // Darknet counts from 0
  double span = static_cast<double>(run.max_iterations);
  if (params.until == 1) {
    if (passed > span / 2) return 0;
  } else {
    if (passed < static_cast<double>(run.burn_in)) return 0;
    if (passed > static_cast<double>(params.until)) return 0;
    span = static_cast<double>(run.burn_in + params.until);
  }
  if (span <= 0) return 0;
  constexpr double kPi = 3.14159265358979323846;
  return static_cast<float>((1 + std::cos(kPi * passed / span)) / 2);
}

const graph::OpDef kExcitation{.name = "excitation", .infer = infer, .gradient = gradient};

KernelChoice choose_excitation(const Op& op, const SelectContext& context) {
  const ExcitationParams params = op.params_as<ExcitationParams>();
  const Layout layout = context.data_layout(op.inputs[0]);
  const Shape shape = context.shape(op.inputs[0]);
  const BlockedExtents e(shape, layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout, Layout{}},
          .outputs = {layout},
          .may_alias = {{0, 0}},
          .images = e.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const float share = excitation_share(params, run);
            parallel_for(run.images * e.spatial, threads, [&](std::int64_t job) {
              const std::int64_t image = job / e.spatial;
              const std::int64_t s = job % e.spatial;
              const float* rows =
                  static_cast<const float*>(o[1]) + image * params.max_truths * kTruthFloats;
              const std::int64_t cell = e.offset(image, 0) + s * e.block;
              const float* src = static_cast<const float*>(o[0]) + cell;
              float* dst = static_cast<float*>(o[2]) + cell;
              const auto at = [&](std::int64_t c) { return c / e.block * e.plane() + c % e.block; };
              float more = 0;
              if (share != 0 &&
                  is_excited(rows, params.max_truths, s / shape.w(), s % shape.w(), shape)) {
                double sum = 0;
                for (std::int64_t c = 0; c < e.c; ++c) sum += static_cast<double>(src[at(c)]);
                more = share * static_cast<float>(sum / static_cast<double>(e.c));
              }
              for (std::int64_t c = 0; c < e.c; ++c) dst[at(c)] = src[at(c)] + more;
              for (std::int64_t c = e.c; c < e.blocks * e.block; ++c) dst[at(c)] = 0;
            });
          })};
}

}  // namespace lantern::ops
