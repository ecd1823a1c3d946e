// Upsampling and its transpose against the reference loops.

#include "ops/upsample/upsample.hpp"

#include "ops/op_runner.hpp"
#include "ops/upsample/upsample_ref.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

TEST(Upsample, MatchesTheReference) {
  // The reducing kind leaves rows and columns beyond the last whole block without part.
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& shape :
         {Shape{1, 1, 3, 3}, Shape{2, 3, 4, 5}, Shape{3, 16, 3, 7}, Shape{2, 21, 5, 4}}) {
      for (const std::int64_t stride : {1, 2, 3}) {
        for (const bool reduce : {false, true}) {
          const std::int64_t signed_stride = reduce ? -stride : stride;
          const float scale = reduce ? 0.25F : 1.5F;
          const Shape out{shape.n(), shape.c(), ops::ref::upsample_side(shape.h(), signed_stride),
                          ops::ref::upsample_side(shape.w(), signed_stride)};
          Rng rng(51, "upsample", reduce ? 1 : 0,
                  static_cast<std::uint32_t>(shape.elements() * 4 + stride));
          const Floats x = random_floats(rng, shape.elements());
          const Floats dy = random_floats(rng, out.elements());
          OpRunner runner(options);
          const TensorId src = runner.source("x", shape, x);
          const TensorId dst = runner.op(
              ops::kUpsampleForward,
              std::make_shared<const ops::UpsampleParams>(stride, reduce, scale), {src}, "y")[0];
          ASSERT_EQ(runner.graph().type(dst).shape, out);
          runner.keep(dst);
          runner.differentiate({{dst, dy}});
          runner.run();
          Floats y(dy.size());
          Floats dx = initial_gradient(options, shape);
          ops::ref::upsample_forward(shape.n(), shape.c(), shape.h(), shape.w(), signed_stride,
                                     scale, x.data(), y.data());
          ops::ref::upsample_backward(shape.n(), shape.c(), shape.h(), shape.w(), signed_stride,
                                      scale, dy.data(), dx.data());
          expect_close(runner.value(dst), y, 1e-6F, "y");
          expect_close(runner.gradient(src), dx, 2e-6F, "dx");
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

}  // namespace
}  // namespace lantern::test
