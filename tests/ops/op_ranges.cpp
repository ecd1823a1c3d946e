#include "ops/op_ranges.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/rng.hpp"

namespace lantern::test {

using graph::Role;
using graph::SelectedOp;
using graph::SelectedTensor;

namespace {

constexpr int kPoison = 0xff;  // NaN in every type

// Six values a row: a box inside the image and a class, which every loss can read.
std::vector<float> random_truth(Rng& rng, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  const std::int64_t row = shape[1];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) % row;
    if (row >= 24 && at >= 18) continue;  // the end of the list
    const bool is_class = at % 6 == 4;
    values[i] = is_class ? static_cast<float>(rng.uniform_int(0, 1)) : rng.uniform(0.1F, 0.6F);
  }
  return values;
}

std::vector<float> random_values(Rng& rng, const SelectedTensor& tensor) {
  if (tensor.name == "truth") return random_truth(rng, tensor.shape);
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  const bool positive = tensor.role == Role::kInput || tensor.name.ends_with(".scales") ||
                        tensor.name.ends_with(".rolling_variance");
  for (float& value : values) value = positive ? rng.uniform(0.5F, 1.5F) : rng.uniform(-0.4F, 0.4F);
  return values;
}

// Ways to cut the images: as small as the op allows, and two unequal parts.
std::vector<std::vector<std::int64_t>> cuts_of(std::int64_t images, std::int64_t group) {
  std::vector<std::vector<std::int64_t>> cuts;
  const std::int64_t half = std::max<std::int64_t>(1, images / 2);
  for (const std::int64_t step : {group, round_up(half, group)}) {
    std::vector<std::int64_t> starts;
    for (std::int64_t at = 0; at < images; at += step) starts.push_back(at);
    starts.push_back(images);
    if (std::ranges::find(cuts, starts) == cuts.end()) cuts.push_back(std::move(starts));
  }
  return cuts;
}

}  // namespace

OpRanges::OpRanges(const graph::Graph& graph, const ops::SelectOptions& options)
    : selection_(ops::select(graph, options)), threads_(options.threads) {
  for (const SelectedTensor& tensor : selection_.selected.tensors)
    stores_.emplace_back(static_cast<std::size_t>(tensor.bytes));
  fill_inputs();
}

void OpRanges::fill_inputs() {
  Rng rng(17, "ranges");
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    const SelectedTensor& tensor = selection_.selected.tensors[i];
    const bool is_fed = tensor.role == Role::kInput || tensor.role == Role::kParameter ||
                        tensor.role == Role::kState;
    std::memset(stores_[i].data(), graph::is_persistent(tensor.role) ? 0 : kPoison,
                stores_[i].size());
    if (!is_fed || tensor.dtype != DType::kF32) continue;
    ops::from_plain(selection_.layouts[i], tensor.shape, random_values(rng, tensor).data(),
                    reinterpret_cast<float*>(stores_[i].data()));
  }
}

bool OpRanges::is_scratch(std::uint32_t tensor) const {
  return selection_.selected.tensors[tensor].role == Role::kScratch;
}

void OpRanges::compare(RangeCoverage& coverage) {
  omp_set_num_threads(threads_);
  for (const graph::ProgramKind program :
       {graph::ProgramKind::kMiniBatch, graph::ProgramKind::kForward}) {
    for (int subdivision = 0; subdivision < 2; ++subdivision) {
      const ops::RunContext context{.seed = 5,
                                    .iteration = 3,
                                    .subdivision = subdivision,
                                    .learning_rate = 0.01F,
                                    .batch = 14,
                                    .max_iterations = 3};
      for (std::size_t i = 0; i < selection_.selected.ops.size(); ++i) {
        if (selection_.selected.ops[i].program != program) continue;
        compare_op(i, context, coverage);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

void OpRanges::restore(const SelectedOp& op, const std::vector<Bytes>& before) {
  for (std::size_t k = 0; k < op.writes.size(); ++k) {
    const std::uint32_t tensor = op.writes[k];
    const bool stays =
        op.accumulates[k] || graph::is_persistent(selection_.selected.tensors[tensor].role);
    if (is_scratch(tensor)) continue;
    if (stays) {
      std::memcpy(stores_[tensor].data(), before[k].data(), before[k].size());
    } else {
      std::memset(stores_[tensor].data(), kPoison, stores_[tensor].size());
    }
  }
  poison_scratch(op);
}

void OpRanges::poison_scratch(const SelectedOp& op) {
  for (const std::uint32_t tensor : op.writes) {
    if (is_scratch(tensor)) std::memset(stores_[tensor].data(), kPoison, stores_[tensor].size());
  }
}

std::vector<OpRanges::Bytes> OpRanges::written(const SelectedOp& op) {
  std::vector<Bytes> all;
  for (const std::uint32_t tensor : op.writes) {
    Store& store = stores_[tensor];
    all.emplace_back(store.data(), store.data() + (is_scratch(tensor) ? 0 : store.size()));
  }
  return all;
}

void OpRanges::run(std::size_t index, ops::RunContext context, std::int64_t first,
                   std::int64_t images) {
  const SelectedOp& op = selection_.selected.ops[index];
  std::vector<void*> operands;
  const auto add = [&](std::uint32_t tensor) {
    const SelectedTensor& info = selection_.selected.tensors[tensor];
    const lantern::Bytes skip = info.images > 0 ? info.bytes / info.images * first : 0;
    operands.push_back(stores_[tensor].data() + skip);
  };
  std::ranges::for_each(op.reads, add);
  std::ranges::for_each(op.writes, add);
  context.first_image = first;
  context.images = images;
  context.all_images = op.images;
  selection_.kernels[index]->prepare(images);
  selection_.kernels[index]->run(operands, context);
}

void OpRanges::compare_op(std::size_t index, const ops::RunContext& context,
                          RangeCoverage& coverage) {
  const SelectedOp& op = selection_.selected.ops[index];
  const std::vector<Bytes> before = written(op);
  restore(op, before);
  run(index, context, 0, op.images);
  if (op.images == 0) return;
  const std::vector<Bytes> whole = written(op);
  for (std::size_t k = 0; k < op.writes.size(); ++k) {
    const SelectedTensor& tensor = selection_.selected.tensors[op.writes[k]];
    if (is_scratch(op.writes[k]) || tensor.dtype != DType::kF32 || tensor.images == 0) continue;
    for (std::size_t i = 0; i < whole[k].size(); i += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, whole[k].data() + i, sizeof value);
      ASSERT_TRUE(std::isfinite(value)) << op.op << " writes " << value << " into " << tensor.name;
    }
  }
  for (const std::vector<std::int64_t>& cuts :
       cuts_of(op.images, std::max<std::int64_t>(1, op.image_group))) {
    restore(op, before);
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      if (!op.carries) poison_scratch(op);
      run(index, context, cuts[k], cuts[k + 1] - cuts[k]);
    }
    const std::vector<Bytes> parts = written(op);
    for (std::size_t k = 0; k < op.writes.size(); ++k) {
      ASSERT_TRUE(parts[k] == whole[k]) << op.op << " (" << op.kernel << ") of layer " << op.layer
                                        << ": " << selection_.selected.tensors[op.writes[k]].name
                                        << " differs in " << cuts.size() - 1 << " ranges";
      if (cuts.size() < 3) continue;
      coverage.divided.insert(op.op);
      const bool adds = op.accumulates[k];
      if (adds && selection_.selected.tensors[op.writes[k]].images > 0)
        coverage.accumulated.insert(op.op);
    }
  }
}

}  // namespace lantern::test
