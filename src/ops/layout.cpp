#include "ops/layout.hpp"

#include <dnnl.h>
#include <fmt/format.h>

#include <cstring>

namespace lantern::ops {

std::string Layout::describe(const Shape& shape) const {
  if (opaque) return opaque->describe();
  if (shape.rank() != 4) return "plain";
  return block == 1 ? "nchw" : fmt::format("nChw{}c", block);
}

Bytes Layout::bytes(const Shape& shape, DType dtype) const {
  if (opaque) return opaque->bytes();
  if (shape.rank() == 1) return round_up(shape[0], 16) * size_of(dtype);
  if (shape.rank() != 4 || block == 1) return shape.elements() * size_of(dtype);
  return shape.n() * round_up(shape.c(), block) * shape.h() * shape.w() * size_of(dtype);
}

// The library is asked, not the CPU: it may be held to less (ONEDNN_MAX_CPU_ISA), and its fast
// convolutions want the block of the instructions that they use.
int preferred_block() {
  const unsigned has = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  return (has & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? 16 : 8;
}

namespace {
// Visits every logical element with its plain and its blocked index.
template <typename Visit>
void for_each_element(const Shape& shape, int block, Visit visit) {
  const std::int64_t blocks = ceil_div(shape.c(), block);
  const std::int64_t spatial = shape.h() * shape.w();
  for (std::int64_t n = 0; n < shape.n(); ++n) {
    for (std::int64_t c = 0; c < shape.c(); ++c) {
      const std::int64_t plain = (n * shape.c() + c) * spatial;
      const std::int64_t blocked = (n * blocks + c / block) * spatial * block + c % block;
      for (std::int64_t s = 0; s < spatial; ++s) visit(plain + s, blocked + s * block);
    }
  }
}
}  // namespace

void to_plain(const Layout& layout, const Shape& shape, const float* physical, float* plain) {
  if (layout.opaque) {
    layout.opaque->to_plain(physical, plain);
  } else if (shape.rank() == 4 && layout.block > 1) {
    for_each_element(shape, layout.block,
                     [&](std::int64_t p, std::int64_t b) { plain[p] = physical[b]; });
  } else {
    std::memcpy(plain, physical, static_cast<std::size_t>(shape.elements()) * sizeof(float));
  }
}

void from_plain(const Layout& layout, const Shape& shape, const float* plain, float* physical) {
  if (layout.opaque) {
    layout.opaque->from_plain(plain, physical);
  } else if (shape.rank() == 4 && layout.block > 1) {
    std::memset(physical, 0, static_cast<std::size_t>(layout.bytes(shape, DType::kF32)));
    for_each_element(shape, layout.block,
                     [&](std::int64_t p, std::int64_t b) { physical[b] = plain[p]; });
  } else {
    std::memset(physical, 0, static_cast<std::size_t>(layout.bytes(shape, DType::kF32)));
    std::memcpy(physical, plain, static_cast<std::size_t>(shape.elements()) * sizeof(float));
  }
}

}  // namespace lantern::ops
