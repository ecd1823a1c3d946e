// What `select` hands on: few reorders, stable layouts, fast convolutions.

#include <dnnl.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <iostream>

#include "exec/model.hpp"
#include "names.hpp"
#include "ops/conv/conv.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::ProgramKind;
using graph::Role;
using graph::TensorId;

const ops::ConvGeometry kGeometry{.n = 2,
                                  .ic = 32,
                                  .ih = 6,
                                  .iw = 5,
                                  .oc = 32,
                                  .oh = 6,
                                  .ow = 5,
                                  .kh = 3,
                                  .kw = 3,
                                  .ph = 1,
                                  .pw = 1};
const Shape kMap{2, 32, 6, 5};

std::int64_t reorders_of(const graph::Selected& selected, TensorId tensor) {
  return std::ranges::count_if(selected.ops, [&](const graph::SelectedOp& op) {
    return op.op == "reorder" && op.reads[0] == graph::index(tensor);
  });
}

// Three convolutions over one map that lies plain, because the host writes it.
struct Readers {
  graph::Graph graph;
  TensorId image = graph.add_tensor("image", {kMap}, Role::kInput);
  TensorId other = graph.add_tensor("other", {kMap}, Role::kInput);
  std::vector<TensorId> results;

  void convolve(ProgramKind program) {
    const std::string name = "y" + std::to_string(results.size());
    const TensorId weights = graph.add_tensor(name + ".w", {Shape{32, 32, 3, 3}}, Role::kParameter);
    results.push_back(graph.add_op(ops::kConvForward,
                                   std::make_shared<const ops::ConvParams>(kGeometry, false),
                                   {image, weights}, program, 0, name, Role::kOutput)[0]);
  }
  void overwrite(ProgramKind program) {
    graph.add_op_to(ops::kCopy, std::make_shared<const graph::OpParams>(), {other}, {image}, {},
                    program, 0);
  }
};

TEST(Selection, ReadersOfOneLayoutShareAReorder) {
  Readers readers;
  for (int i = 0; i < 3; ++i) readers.convolve(ProgramKind::kMiniBatch);
  EXPECT_EQ(reorders_of(ops::select(readers.graph, {}).selected, readers.image), 1);
}

TEST(Selection, AReorderIsMadeAnewOnceTheOriginalIsWritten) {
  Readers readers;
  readers.convolve(ProgramKind::kMiniBatch);
  readers.overwrite(ProgramKind::kMiniBatch);
  readers.convolve(ProgramKind::kMiniBatch);
  readers.convolve(ProgramKind::kMiniBatch);
  ops::Selection selection = ops::select(readers.graph, {.threads = 1});
  EXPECT_EQ(reorders_of(selection.selected, readers.image), 2);
  plan::Program program = plan::make_program(selection.selected);
  plan::check(selection.selected, program);
  exec::Executor executor(std::move(selection), std::move(program), 1);
  Rng rng(97, "reorders");
  const Floats weights = random_floats(rng, kGeometry.weights_count());
  for (int i = 0; i < 3; ++i) {
    executor.write(*readers.graph.find("y" + std::to_string(i) + ".w"), weights);
  }
  executor.write(readers.image, random_floats(rng, kMap.elements()));
  executor.write(readers.other, random_floats(rng, kMap.elements()));
  executor.run(ProgramKind::kMiniBatch, {});
  EXPECT_NE(executor.read(readers.results[0]), executor.read(readers.results[1]));
  EXPECT_EQ(executor.read(readers.results[1]), executor.read(readers.results[2]));
}

TEST(Selection, ProgramsDoNotShareReorders) {
  Readers readers;
  readers.convolve(ProgramKind::kMiniBatch);
  readers.convolve(ProgramKind::kForward);
  const ops::Selection selection = ops::select(readers.graph, {});
  EXPECT_EQ(reorders_of(selection.selected, readers.image), 2);
  EXPECT_NO_THROW(plan::check(selection.selected, plan::make_program(selection.selected)));
}

std::vector<std::string> text_of(const ops::Selection& selection) {
  std::vector<std::string> text{selection.selected.dump()};
  for (const graph::SelectedTensor& tensor : selection.selected.tensors) {
    text.push_back(tensor.name + " " + tensor.layout + " " + std::to_string(tensor.bytes));
  }
  return text;
}

ops::Selection select_stock(const std::string& name, int threads) {
  const layers::Network network =
      layers::load_network_file(std::string(LANTERN_TEST_DATA) + "/cfg/" + name + ".cfg");
  const layers::Lowered lowered =
      layers::lower(network, {.training = true, .mini_batch = 4, .forward_batch = 1});
  return ops::select(lowered.graph, {.threads = threads});
}

// The library divides work by the team size of the thread that makes a primitive.
TEST(Selection, IsAFunctionOfGraphAndOptionsAlone) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<std::string> first = text_of(select_stock("yolov4-tiny", 2));
  EXPECT_EQ(omp_get_max_threads(), 1) << "the caller's team size is its own";
  omp_set_num_threads(4);
  const std::vector<std::string> second = text_of(select_stock("yolov4-tiny", 2));
  omp_set_num_threads(before);
  EXPECT_EQ(first, second);
}

class StockNet : public ::testing::TestWithParam<const char*> {};

TEST_P(StockNet, TrainsWithFastConvolutions) {
  if ((dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx2) != dnnl_cpu_isa_avx2) {
    GTEST_SKIP() << "oneDNN has no fast backward convolutions before AVX2";
  }
  const ops::Selection selection = select_stock(GetParam(), 2);
  std::vector<std::string> kernels;
  std::int64_t convolutions = 0;
  for (const graph::SelectedOp& op : selection.selected.ops) {
    if (!op.op.starts_with("conv_")) continue;
    ++convolutions;
    const std::string line = op.op + " " + op.kernel;
    if (std::ranges::find(kernels, line) == kernels.end()) kernels.push_back(line);
    EXPECT_TRUE(op.kernel.starts_with("onednn:jit"))  // neither im2col nor plain loops
        << op.op << " of layer " << op.layer << " runs as " << op.kernel;
  }
  EXPECT_GT(convolutions, 40);
  std::ranges::sort(kernels);
  for (const std::string& line : kernels) std::cout << "  " << line << "\n";
}

TEST_P(StockNet, EveryProgramReadsParametersAsTheyLie) {
  const ops::Selection selection = select_stock(GetParam(), 2);
  for (const graph::SelectedOp& op : selection.selected.ops) {
    if (op.op != "reorder" || op.program == ProgramKind::kMiniBatch) continue;
    const graph::SelectedTensor& source = selection.selected.tensors[op.reads[0]];
    EXPECT_FALSE(source.role == Role::kParameter || source.role == Role::kParameterGradient)
        << source.name << " is reordered in " << graph::to_string(op.program);
  }
}

INSTANTIATE_TEST_SUITE_P(Selection, StockNet,
                         ::testing::Values("yolov3-tiny", "yolov4-tiny", "yolov3-spp", "yolov4",
                                           "yolov4-csp"),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace lantern::test
