#include "graph/saved.hpp"

#include <gtest/gtest.h>

namespace lantern::graph {
namespace {

const OpDef kAny{.name = "any"};

class SavedBytes : public ::testing::Test {
 protected:
  TensorId tensor(const char* name, std::int64_t elements, Role role, DType type = DType::kF32) {
    return graph.add_tensor(name, {Shape{elements}, type}, role);
  }
  void op(std::vector<TensorId> reads, std::vector<TensorId> writes,
          ProgramKind program = ProgramKind::kMiniBatch) {
    std::vector<bool> adds(writes.size(), false);
    graph.add_op_to(kAny, std::make_shared<const OpParams>(), std::move(reads), std::move(writes),
                    std::move(adds), program, 0);
  }
  Graph graph;
};

TEST_F(SavedBytes, AreWhatForwardMakesAndBackwardReads) {
  const TensorId images = tensor("images", 100, Role::kInput);
  const TensorId map = tensor("map", 4, Role::kActivation);
  const TensorId argmax = tensor("argmax", 5, Role::kStatistic, DType::kU8);
  const TensorId passing = tensor("passing", 7, Role::kActivation);
  const TensorId gradient = tensor("gradient", 9, Role::kGradient);
  const TensorId weights = tensor("weights.gradient", 9, Role::kParameterGradient);
  op({images}, {map});
  op({map}, {argmax, passing});
  EXPECT_EQ(saved_bytes(graph), 0) << "nothing goes backward yet";
  op({passing, map}, {tensor("loss", 1, Role::kOutput)});
  op({map, argmax, images}, {gradient});
  op({gradient, map, argmax}, {weights});
  op({passing}, {tensor("step", 7, Role::kState)}, ProgramKind::kUpdate);
  EXPECT_EQ(saved_bytes(graph), 4 * 4 + 5);
}

TEST_F(SavedBytes, OfInferenceAreNone) {
  const TensorId images = tensor("images", 100, Role::kInput);
  const TensorId map = tensor("map", 4, Role::kActivation);
  op({images}, {map}, ProgramKind::kForward);
  op({map}, {tensor("end", 4, Role::kGradient)}, ProgramKind::kForward);
  EXPECT_EQ(saved_bytes(graph), 0);
}

}  // namespace
}  // namespace lantern::graph
