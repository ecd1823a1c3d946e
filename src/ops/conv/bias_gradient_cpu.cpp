#include "ops/conv/bias_gradient_cpu.hpp"

#include <cstring>

#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"

namespace lantern::ops {

namespace {
// The sum of the images so far stays in `totals` from one run to the next.
template <int B>
void bias_gradient(const float* diff_dst, float* diff_bias, double* totals, const BlockedExtents& e,
                   const RunContext& run, int threads) {
  using Double = typename Vec<B>::Double;
  parallel_for(e.blocks, threads, [&](std::int64_t cb) {
    Double total = {};
    if (run.first_image > 0) std::memcpy(&total, totals + cb * B, sizeof total);
    for (std::int64_t image = 0; image < run.images; ++image) {
      // Two sums side by side hide the latency of the additions.
      Double even = {};
      Double odd = {};
      const float* plane = diff_dst + e.offset(image, cb);
      std::int64_t i = 0;
      for (; i + 1 < e.spatial; i += 2) {
        even += __builtin_convertvector(load<B>(plane + i * B), Double);
        odd += __builtin_convertvector(load<B>(plane + (i + 1) * B), Double);
      }
      if (i < e.spatial) even += __builtin_convertvector(load<B>(plane + i * B), Double);
      total += even + odd;
    }
    std::memcpy(totals + cb * B, &total, sizeof total);
    if (!run.is_last()) return;
    for (int lane = 0; lane < e.lanes_used(cb); ++lane) {
      float& target = diff_bias[cb * B + lane];
      target = (run.subdivision == 0 ? 0.0F : target) + static_cast<float>(total[lane]);
    }
  });
}
}  // namespace

KernelChoice choose_bias_gradient(const graph::Op& op, const SelectContext& context) {
  // The convolution's backward reads the gradient in channel blocks as well: the reorder is shared,
  // and lanes sum side by side.
  const Layout layout{.block = context.block};
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {Layout{}},
          .scratch = {e.blocks * e.block * static_cast<Bytes>(sizeof(double))},
          .images = e.n,
          .carries = true,
          .kernel = make_kernel([e, threads](std::span<void* const> o, const RunContext& run) {
            with_block(e.block, [&](auto b) {
              bias_gradient<b()>(static_cast<const float*>(o[0]), static_cast<float*>(o[1]),
                                 static_cast<double*>(o[2]), e, run, threads);
            });
          })};
}

}  // namespace lantern::ops
