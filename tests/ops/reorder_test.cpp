// Reorders between layouts: what is read back in plain order must not change a bit.

#include "ops/reorder.hpp"

#include <limits>

#include "ops/onednn.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using ops::Layout;

Floats physical(const Layout& layout, const Shape& shape, float fill) {
  return Floats(static_cast<std::size_t>(layout.bytes(shape, DType::kF32)) / sizeof(float), fill);
}

void run(ops::KernelChoice& choice, Floats& from, Floats& to) {
  std::vector<void*> operands{from.data(), to.data()};
  choice.kernel->run(operands, {.images = choice.images, .all_images = choice.images});
}

TEST(Layout, PlainValuesSurviveTheRoundTripAndPaddingIsZero) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 19, 3, 4}, Shape{3, 32, 2, 5}}) {
    for (const int block : {1, 8, 16}) {
      const Layout layout{.block = block};
      Rng rng(94, "layout");
      const Floats plain = random_floats(rng, shape.elements(), 1, 2);
      Floats blocked = physical(layout, shape, std::numeric_limits<float>::quiet_NaN());
      ops::from_plain(layout, shape, plain.data(), blocked.data());
      double sum = 0;
      double want = 0;
      for (const float v : blocked) sum += v;
      for (const float v : plain) want += v;
      EXPECT_NEAR(sum, want, 1e-9);
      Floats back(plain.size());
      ops::to_plain(layout, shape, blocked.data(), back.data());
      EXPECT_EQ(back, plain);
    }
  }
}

TEST(Reorder, MovesDataBetweenAllBlocks) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1}, Shape{2, 19, 3, 4}, Shape{3, 32, 2, 5}, Shape{2, 40, 1, 3}}) {
    for (const int from_block : {1, 8, 16}) {
      for (const int to_block : {1, 8, 16}) {
        for (const bool accumulate : {false, true}) {
          for (const int threads : {1, 2}) {
            SCOPED_TRACE(::testing::Message() << shape.to_string() << " " << from_block << " -> "
                                              << to_block << (accumulate ? " accumulate" : ""));
            const Layout from{.block = from_block};
            const Layout to{.block = to_block};
            Rng rng(95, "reorder");
            const Floats plain = random_floats(rng, shape.elements());
            const Floats before = random_floats(rng, shape.elements());
            Floats source = physical(from, shape, 0);
            Floats target = physical(to, shape, std::numeric_limits<float>::quiet_NaN());
            ops::from_plain(from, shape, plain.data(), source.data());
            Floats want = plain;
            if (accumulate) {
              ops::from_plain(to, shape, before.data(), target.data());
              for (std::size_t i = 0; i < want.size(); ++i) want[i] += before[i];
            }
            ops::KernelChoice choice = ops::choose_reorder(shape, from, to, accumulate, threads);
            run(choice, source, target);
            Floats expected = physical(to, shape, 0);
            ops::from_plain(to, shape, want.data(), expected.data());
            ASSERT_EQ(target, expected);  // padding lanes included
          }
        }
      }
    }
  }
}

TEST(Reorder, MovesWeightsBetweenLibraryLayouts) {
  using Tag = dnnl::memory::format_tag;
  const Shape shape{21, 19, 3, 3};
  const auto layout = [](Tag tag) {
    return ops::onednn::weights_layout({{21, 19, 3, 3}, dnnl::memory::data_type::f32, tag});
  };
  const std::vector<Tag> tags{Tag::oihw, Tag::OIhw16i16o, Tag::OIhw8i8o, Tag::Ohwi16o, Tag::hwio};
  Rng rng(96, "weights");
  const Floats plain = random_floats(rng, shape.elements());
  for (const Tag first : tags) {
    for (const Tag second : tags) {
      const Layout from = layout(first);
      const Layout to = layout(second);
      EXPECT_EQ(from == to, first == second);
      Floats source = physical(from, shape, 0);
      Floats target = physical(to, shape, std::numeric_limits<float>::quiet_NaN());
      ops::from_plain(from, shape, plain.data(), source.data());
      ops::KernelChoice choice = ops::choose_reorder(shape, from, to, false, 2);
      run(choice, source, target);
      for (const float v : target)
        ASSERT_FALSE(std::isnan(v));  // the optimiser runs over padding too
      Floats back(plain.size());
      ops::to_plain(to, shape, target.data(), back.data());
      ASSERT_EQ(back, plain);
    }
  }
}

}  // namespace
}  // namespace lantern::test
