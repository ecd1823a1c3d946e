#pragma once

#include "ops/kernel.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

/// The forward op of a detection head: `activate(from, to)` an image of `size` floats, which lie
/// plain. `in_place`: `to` may be `from`.
template <typename Activate>
KernelChoice choose_head_forward(const graph::Op& op, const SelectContext& context,
                                 std::int64_t size, bool in_place, Activate activate) {
  KernelChoice choice{.name = "cpu",
                      .inputs = {Layout{}},
                      .outputs = {Layout{}},
                      .images = context.shape(op.inputs[0]).n()};
  if (in_place) choice.may_alias.push_back({0, 0});
  choice.kernel =
      make_kernel([=, threads = context.threads](std::span<void* const> o, const RunContext& run) {
        parallel_for(run.images, threads, [&](std::int64_t image) {
          activate(static_cast<const float*>(o[0]) + image * size,
                   static_cast<float*>(o[1]) + image * size);
        });
      });
  return choice;
}

}  // namespace lantern::ops
