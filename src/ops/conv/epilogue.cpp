#include "ops/conv/epilogue.hpp"

#include <fmt/format.h>

#include "ops/activation/activation_simd.hpp"
#include "ops/blocks.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

namespace {

template <int B, typename Update>
void update_blocks(const BlockedExtents& e, const float* residual, float* y, std::int64_t images,
                   int threads, Update update) {
  parallel_for(images * e.blocks, threads, [&](std::int64_t job) {
    const std::int64_t at = job * e.plane();
    const int used = e.lanes_used(job % e.blocks);
    for (std::int64_t i = 0; i < e.plane(); i += B) {
      auto value = update(load<B>(y + at + i), residual != nullptr ? residual + at + i : nullptr);
      for (int lane = used; lane < B; ++lane) value[lane] = 0.0F;
      store<B>(y + at + i, value);
    }
  });
}

}  // namespace

std::string Epilogue::describe() const {
  if (is_empty()) return "";
  return fmt::format(" activation={}{}{}", to_string(activation), residual ? " residual" : "",
                     last != Activation::kLinear ? fmt::format(" last={}", to_string(last)) : "");
}

void apply_epilogue(const Epilogue& epilogue, const Shape& shape, int block, const float* residual,
                    float* y, std::int64_t images, int threads) {
  if (epilogue.is_empty()) return;
  const BlockedExtents e(shape, block);
  with_block(block, [&](auto b) {
    constexpr int B = b();
    with_activation(epilogue.activation, [&](auto act) {
      update_blocks<B>(e, residual, y, images, threads, [&](auto value, const float* side) {
        value = activate<B>(act(), value);
        return side != nullptr ? value + load<B>(side) : value;
      });
    });
    if (epilogue.last == Activation::kLinear) return;
    with_activation(epilogue.last, [&](auto act) {
      update_blocks<B>(e, nullptr, y, images, threads,
                       [&](auto value, const float*) { return activate<B>(act(), value); });
    });
  });
}

}  // namespace lantern::ops
