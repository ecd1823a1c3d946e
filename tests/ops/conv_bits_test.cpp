// What may change no bit of a convolution: the thread count, the images of a call, what ran before.

#include "ops/conv_run.hpp"

namespace lantern::test {
namespace {

// Layers of stock nets at their own sizes, where the library cuts its work in other ways than on
// small ones, and random ones.
std::vector<ConvGeometry> geometries() {
  std::vector<ConvGeometry> all = stock_geometries();
  for (const ConvGeometry& g :
       {square(2, 1024, 13, 256, 1), square(2, 256, 13, 512, 3), square(2, 64, 26, 128, 3, 2),
        square(5, 32, 52, 64, 1), square(1, 512, 13, 255, 1)}) {
    all.push_back(g);
  }
  for (std::uint32_t trial = 0; trial < 30; ++trial) {
    Rng rng(32, "conv bits", 0, trial);
    all.push_back(random_geometry(rng));
  }
  return all;
}

RunnerOptions with_threads(int threads) {
  return {.block = ops::preferred_block(), .threads = threads};
}

TEST(ConvBits, OutputsAndSourceGradientsDoNotDependOnTheThreadCount) {
  std::uint32_t trial = 0;
  int exact = 0;
  for (const ConvGeometry& g : geometries()) {
    SCOPED_TRACE(to_string(g));
    RunnerOptions options = with_threads(1);
    options.accumulate = trial % 2 == 1;
    ConvRun conv(g, true, trial++);
    const auto one = conv.run(options);
    if (!conv.exact_kernels) continue;
    ++exact;
    for (options.threads = 2; options.threads <= 3; ++options.threads) {
      const auto more = conv.run(options);
      ASSERT_EQ(one.y, more.y);
      ASSERT_EQ(one.dx, more.dx);
      ASSERT_EQ(one.db, more.db);
    }
  }
  EXPECT_GE(exact, 10);
}

TEST(ConvBits, RepeatedRunsAreEqual) {
  std::uint32_t trial = 50;
  for (const ConvGeometry& g : geometries()) {
    SCOPED_TRACE(to_string(g));
    ConvRun conv(g, true, trial++);
    const auto first = conv.run(with_threads(2));
    // Another thread count in between must not leak into what is selected next.
    conv.run(with_threads(1));
    const auto again = conv.run(with_threads(2));
    ASSERT_EQ(first.y, again.y);
    ASSERT_EQ(first.dw, again.dw);
    ASSERT_EQ(first.dx, again.dx);
  }
}

// A mini-batch may be cut into calls of fewer images: outputs and source gradients of an image
// depend on it alone.
TEST(ConvBits, OneImageAtATimeGivesTheWholeBatch) {
  std::uint32_t trial = 80;
  int exact = 0;
  for (const ConvGeometry& g : geometries()) {
    SCOPED_TRACE(to_string(g));
    ConvRun whole(g, true, trial++);
    const auto all = whole.run(with_threads(2));
    if (!whole.exact_kernels) continue;
    ++exact;
    ConvGeometry single = g;
    single.n = 1;
    const auto part = [&](const Floats& values, std::int64_t image) {
      const auto size = static_cast<std::ptrdiff_t>(values.size()) / g.n;
      return Floats(values.begin() + image * size, values.begin() + (image + 1) * size);
    };
    for (std::int64_t image = 0; image < g.n; ++image) {
      ConvRun one(single, true, 0);
      one.x = part(whole.x, image);
      one.dy = part(whole.dy, image);
      one.w = whole.w;
      one.b = whole.b;
      const auto r = one.run(with_threads(2));
      ASSERT_EQ(r.y, part(all.y, image)) << "image " << image;
      ASSERT_EQ(r.dx, part(all.dx, image)) << "image " << image;
    }
  }
  EXPECT_GE(exact, 10);
}

}  // namespace
}  // namespace lantern::test
