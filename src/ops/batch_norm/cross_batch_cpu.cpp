#include <fmt/format.h>

#include <algorithm>

#include "ops/batch_norm/cross_batch.hpp"

namespace lantern::ops {

std::string CrossBatchParams::describe() const {
  return fmt::format("values={}", values_per_channel);
}

const graph::OpDef kCrossBatchMerge{.name = "cross_batch_merge"};

KernelChoice choose_cross_batch_merge(const graph::Op& op, const SelectContext& context) {
  const std::int64_t channels = context.shape(op.inputs[0])[0];
  const auto count = static_cast<double>(op.params_as<CrossBatchParams>().values_per_channel);
  return {
      .name = "cpu",
      .inputs = {Layout{}, Layout{}},
      .outputs = std::vector<Layout>(4),
      .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
        const auto* mean = static_cast<const float*>(o[0]);
        const auto* variance = static_cast<const float*>(o[1]);
        auto* merged_mean = static_cast<float*>(o[2]);
        auto* merged_variance = static_cast<float*>(o[3]);
        auto* running_mean = static_cast<double*>(o[4]);
        auto* running_square = static_cast<double*>(o[5]);
        const double share = 1.0 / (run.subdivision + 1);
        const double unbiased = count / std::max(1.0, count - 1);
        for (std::int64_t c = 0; c < channels; ++c) {
          const double m = mean[c];
          const double q = std::max((static_cast<double>(variance[c]) + m * m) * unbiased, m * m);
          // The first mini-batch forgets the iteration before, whatever it left.
          running_mean[c] = run.subdivision == 0 ? m : share * m + (1 - share) * running_mean[c];
          running_square[c] =
              run.subdivision == 0 ? q : share * q + (1 - share) * running_square[c];
          merged_mean[c] = static_cast<float>(running_mean[c]);
          merged_variance[c] = static_cast<float>(
              std::max(0.0, running_square[c] - running_mean[c] * running_mean[c]));
        }
      })};
}

}  // namespace lantern::ops
