#include "exec/model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "exec/small_network.hpp"

namespace lantern::test {
namespace {

constexpr int kIterations = 3;

std::vector<float> trained(std::uint64_t seed, int threads = 2, bool keep_everything = false) {
  SmallNetwork small = small_network(seed, threads, keep_everything);
  for (int i = 1; i <= kIterations; ++i) small.iterate(i);
  return small.state();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Model, RepeatedRunsGiveTheSameBits) {
  const std::vector<float> first = trained(1);
  for (const float value : first) ASSERT_TRUE(std::isfinite(value));
  EXPECT_TRUE(same_bits(first, trained(1)));
  EXPECT_FALSE(same_bits(first, trained(2)));  // and are no constant
}

TEST(Model, ThePlanChangesNoBit) {
  EXPECT_TRUE(same_bits(trained(1, 2, false), trained(1, 2, true)));
}

TEST(Model, TwoModelsTakingTurnsGiveTheBitsOfEachAlone) {
  SmallNetwork a = small_network(1, 2);
  SmallNetwork b = small_network(2, 2);
  for (int i = 1; i <= kIterations; ++i) {
    a.iterate(i);
    b.iterate(i);
    b.model->forward(std::span(b.images).first(b.images.size() / SmallNetwork::kSubdivisions));
  }
  EXPECT_TRUE(same_bits(a.state(), trained(1)));
  EXPECT_TRUE(same_bits(b.state(), trained(2)));
}

TEST(Model, TwoModelsInTwoThreadsGiveTheBitsOfEachAlone) {
  std::vector<float> a, b;
  std::thread first([&] { a = trained(1, 2); });
  std::thread second([&] { b = trained(2, 1); });
  first.join();
  second.join();
  EXPECT_TRUE(same_bits(a, trained(1, 2)));
  EXPECT_TRUE(same_bits(b, trained(2, 1)));
}

TEST(Model, TheArenaIsThePlans) {
  const SmallNetwork small = small_network(1, 2);
  const exec::Executor& executor = small.model->executor();
  exec::Compiled compiled = exec::compile(small.model->network(), small.model->options());
  EXPECT_EQ(executor.arena_bytes(), compiled.program.arena_bytes);
  EXPECT_GE(compiled.program.arena_bytes, compiled.program.live_peak_bytes);
  EXPECT_EQ(executor.program().dump(executor.selected()),
            compiled.program.dump(compiled.selection.selected));
  // Every placed tensor lies inside it, at its offset from the same base.
  const std::byte* base = nullptr;
  for (std::size_t i = 0; i < compiled.program.persistent.size(); ++i) {
    if (compiled.program.persistent[i] == plan::kNone) continue;
    const plan::Buffer& placement = compiled.program.buffers[compiled.program.persistent[i]];
    EXPECT_LE(placement.offset + placement.bytes, executor.arena_bytes());
    const auto bytes = executor.bytes(static_cast<graph::TensorId>(i));
    EXPECT_EQ(static_cast<Bytes>(bytes.size()), placement.bytes);
    if (base == nullptr) base = bytes.data() - placement.offset;
    EXPECT_EQ(bytes.data(), base + placement.offset);
  }
}

TEST(Model, AnAbandonedIterationLeavesNoTrace) {
  SmallNetwork a = small_network(1, 2);
  SmallNetwork b = small_network(1, 2);
  const std::size_t images = b.images.size() / SmallNetwork::kSubdivisions;
  const std::size_t truth = b.truth.size() / SmallNetwork::kSubdivisions;
  for (int i = 1; i <= kIterations; ++i) {
    b.model->run_mini_batch(std::span(b.images).last(images), std::span(b.truth).first(truth),
                            b.context(i, 0));
    b.model->abandon_iteration();
    a.iterate(i);
    b.iterate(i);
  }
  EXPECT_TRUE(same_bits(a.state(), b.state()));
}

TEST(Model, NamesTheGradientThatIsNotFinite) {
  SmallNetwork small = small_network(1, 2);
  small.iterate(1);
  EXPECT_EQ(small.model->find_non_finite_gradient(small.context(1, 0)), std::nullopt);
  std::vector<float> images(
      small.images.begin(),
      small.images.begin() + static_cast<std::ptrdiff_t>(small.images.size() / 2));
  images[5] = std::nanf("");
  small.model->run_mini_batch(images, std::span(small.truth).first(small.truth.size() / 2),
                              small.context(2, 0));
  const std::optional<std::string> name =
      small.model->find_non_finite_gradient(small.context(2, 0));
  ASSERT_TRUE(name);
  EXPECT_TRUE(name->starts_with("d_L")) << *name;
}

TEST(Model, ParametersComeBackAsTheyWereSet) {
  SmallNetwork small = small_network(1, 2);
  for (std::size_t i = 0; i < small.model->lowered().parameters.size(); ++i) {
    const auto tensor = small.model->lowered().parameters[i].tensor;
    std::vector<float> values(
        static_cast<std::size_t>(small.model->lowered().graph.type(tensor).shape.elements()));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k) + 0.25F;
    small.model->set_parameter(i, values);
    std::vector<float> back(values.size());
    small.model->get_parameter(i, back);
    EXPECT_EQ(values, back) << small.model->lowered().graph.tensor(tensor).name;
  }
}

}  // namespace
}  // namespace lantern::test
