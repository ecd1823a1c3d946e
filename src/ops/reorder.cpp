#include "ops/reorder.hpp"

#include "core/error.hpp"
#include "ops/blocks.hpp"
#include "ops/onednn.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

namespace {

class WeightsReorder final : public Kernel {
 public:
  WeightsReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to)
      : call_(onednn::reorder_call(from, to)) {}
  void run(std::span<void* const> o, const RunContext& /*context*/) override {
    call_.execute({o[0], o[1]});
  }

 private:
  onednn::Call call_;
};

// One (image, channel block of the larger side) job at a time; padding lanes of a blocked target
// are written as zero.
void reorder_data(const float* src, float* dst, std::int64_t images, const BlockedExtents& from,
                  const BlockedExtents& to, bool accumulate, int threads) {
  parallel_for(images * to.blocks, threads, [&](std::int64_t job) {
    const std::int64_t image = job / to.blocks;
    const std::int64_t cb = job % to.blocks;
    float* out = dst + to.offset(image, cb);
    for (int lane = 0; lane < to.block; ++lane) {
      const std::int64_t c = cb * to.block + lane;
      const float* in =
          c < from.c ? src + from.offset(image, c / from.block) + c % from.block : nullptr;
      for (std::int64_t i = 0; i < to.spatial; ++i) {
        const float value = in != nullptr ? in[i * from.block] : 0.0F;
        float& target = out[i * to.block + lane];
        target = accumulate ? target + value : value;
      }
    }
  });
}

}  // namespace

KernelChoice choose_reorder(const Shape& shape, const Layout& from, const Layout& to,
                            bool accumulate, int threads) {
  KernelChoice choice{.inputs = {from}, .outputs = {to}};
  if (from.opaque || to.opaque) {
    LANTERN_ASSERT(from.opaque && to.opaque && !accumulate,
                   "weights are reordered between library layouts");
    choice.name = "onednn:reorder";
    choice.kernel = std::make_unique<WeightsReorder>(onednn::desc_of(from), onednn::desc_of(to));
    return choice;
  }
  LANTERN_ASSERT(shape.rank() == 4, "only data tensors have blocked layouts");
  choice.name = "cpu";
  choice.images = shape.n();
  choice.kernel = make_kernel([source = BlockedExtents(shape, from.block),
                               target = BlockedExtents(shape, to.block), accumulate,
                               threads](std::span<void* const> o, const RunContext& run) {
    reorder_data(static_cast<const float*>(o[0]), static_cast<float*>(o[1]), run.images, source,
                 target, accumulate, threads);
  });
  return choice;
}

}  // namespace lantern::ops
