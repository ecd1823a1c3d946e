// Inside an iteration nothing of ours allocates: malloc and its kin are counted while one runs.
// oneDNN's execute makes a few small ones of its own, so only those above 256 bytes count.

#include <gtest/gtest.h>

#include "exec/malloc_count.hpp"
#include "exec/small_network.hpp"

namespace lantern::test {
namespace {

TEST(Allocation, NothingLargeIsAllocatedInsideAnIteration) {
  if (!MallocCount::works()) GTEST_SKIP() << "a sanitizer owns malloc in this build";
  SmallNetwork small = small_network(1, 2);
  // oneDNN's gemm packs its matrices in memory of its own; this network is one of direct
  // convolutions only.
  for (const graph::SelectedOp& op : small.model->executor().selected().ops) {
    ASSERT_EQ(op.kernel.find("gemm"), std::string::npos) << op.label;
  }
  small.iterate(1);  // the threads of the team are made here
  const auto images =
      std::span<const float>(small.images).first(small.images.size() / SmallNetwork::kSubdivisions);
  const ops::RunContext context = small.context(2, 0);
  small.model->forward(images);
  const MallocCount large(256);
  for (int i = 2; i <= 4; ++i) small.iterate(i);
  small.model->forward(images);
  const bool finite = !small.model->find_non_finite_gradient(context);
  const long count = large.count();
  EXPECT_TRUE(finite);
  EXPECT_EQ(count, 0) << "the largest has " << large.largest() << " bytes";
}

}  // namespace
}  // namespace lantern::test
