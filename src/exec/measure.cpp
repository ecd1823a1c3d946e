#include "exec/measure.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "plan/cost.hpp"

namespace lantern::exec {

namespace {

using graph::Role;
using graph::Selected;
using graph::SelectedOp;
using graph::SelectedTensor;
using Clock = std::chrono::steady_clock;

constexpr Bytes kOperandBytes = 20'000'000;  // beyond caches, small enough to be quick
constexpr double kFlops = 2e9;               // some ten milliseconds
constexpr double kLongRun = 0.05;            // seconds; such a run is timed once
constexpr Bytes kBorder = 256;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Bytes bytes_for(const SelectedTensor& tensor, std::int64_t images) {
  return tensor.images > 0 && images > 0 ? tensor.bytes / tensor.images * images : tensor.bytes;
}

template <typename Visit>
void for_each_operand(const SelectedOp& op, const Visit& visit) {
  for (const std::uint32_t tensor : op.reads) visit(tensor);
  for (const std::uint32_t tensor : op.writes) visit(tensor);
}

// How many images are enough: whole groups, as many as the limits allow, at least one.
std::int64_t images_to_time(const Selected& selected, const SelectedOp& op) {
  if (op.images == 0) return 0;
  Bytes image = 1;
  for_each_operand(op, [&](std::uint32_t tensor) {
    const SelectedTensor& entry = selected.tensors[tensor];
    if (entry.images > 0) image += entry.bytes / entry.images;
  });
  const double flops = op.flops / static_cast<double>(op.images) + 1;
  const auto most =
      std::min(static_cast<double>(kOperandBytes) / static_cast<double>(image), kFlops / flops);
  const std::int64_t group = std::max<std::int64_t>(1, op.image_group);
  // Two groups at least: one alone does not tell what a run costs and what an image does.
  const std::int64_t groups = std::max<std::int64_t>(2, static_cast<std::int64_t>(most) / group);
  return std::min(groups * group, op.images);
}

// What tells two ops apart as far as time goes; images are left out where they are divided.
std::string signature(const Selected& selected, const SelectedOp& op) {
  std::string text =
      fmt::format("{}|{}|{}|{}", op.op, op.kernel, op.image_group,
                  op.images > 0 ? op.flops / static_cast<double>(op.images) : op.flops);
  for_each_operand(op, [&](std::uint32_t tensor) {
    const SelectedTensor& entry = selected.tensors[tensor];
    const bool divided = entry.images > 0 && op.images > 0;
    text += fmt::format("|{}:{}:{}", divided, entry.layout,
                        divided ? entry.bytes / entry.images : entry.bytes);
    // Scratch grows with the mini-batch in some kernels, and says nothing new.
    if (entry.role == Role::kScratch) text.resize(text.rfind('|'));
    for (int axis = divided ? 1 : 0; axis < entry.shape.rank(); ++axis)
      if (entry.role != Role::kScratch) text += fmt::format(",{}", entry.shape[axis]);
  });
  for (const bool accumulates : op.accumulates) text += accumulates ? '+' : '=';
  return text;
}

// Numbers as networks hold them; zero where bytes are indices, truth or counts.
void fill_operand(const SelectedTensor& tensor, void* data, Bytes bytes) {
  std::memset(data, 0, static_cast<std::size_t>(bytes));
  const bool number = tensor.dtype == DType::kF32 &&
                      (tensor.role == Role::kActivation || tensor.role == Role::kGradient ||
                       tensor.role == Role::kParameter || tensor.role == Role::kStatistic);
  if (!number) return;
  auto* values = static_cast<float*>(data);
  for (Bytes i = 0; i < bytes / 4; ++i)
    values[i] = 0.01F + 0.001F * static_cast<float>((i * 7919) % 1000);
}

class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~TeamSize() { omp_set_num_threads(before_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

}  // namespace

std::byte* CostMeter::provide(Bytes bytes) {
  if (!borrowed_.empty()) return borrowed_.data();
  if (memory_.bytes() < bytes) {
    memory_ = device::Arena();  // first give back, then take
    memory_ = device::Arena(bytes);
  }
  return memory_.at(0);
}

double CostMeter::measure(const ops::Selection& selection, std::size_t index, std::int64_t images) {
  const Selected& selected = selection.selected;
  const SelectedOp& op = selected.ops[index];
  const double share =
      images > 0 ? static_cast<double>(images) / static_cast<double>(op.images) : 1.0;
  Bytes total = 0;
  for_each_operand(op, [&](std::uint32_t tensor) {
    total += round_up(bytes_for(selected.tensors[tensor], images), kBorder) + kBorder;
  });
  if (total > (borrowed_.empty() ? most_memory_ : static_cast<Bytes>(borrowed_.size())))
    return device_.op_seconds + plan::op_seconds(selected, op, device_) * share;
  std::byte* memory = provide(std::max<Bytes>(total, kBorder));
  std::vector<void*> operands;
  Bytes offset = 0;
  for_each_operand(op, [&](std::uint32_t tensor) {
    const SelectedTensor& entry = selected.tensors[tensor];
    const Bytes bytes = bytes_for(entry, images);
    operands.push_back(memory + offset);
    fill_operand(entry, operands.back(), bytes);
    offset += round_up(bytes, kBorder) + kBorder;
  });
  ops::Kernel& kernel = *selection.kernels[index];
  if (images > 0) kernel.prepare(images);
  // A rate of zero keeps what is updated as it is.
  const ops::RunContext context{.images = images, .all_images = op.images, .iteration = 1};
  const auto once = [&] {
    const Clock::time_point start = Clock::now();
    kernel.run(operands, context);
    return seconds_since(start);
  };
  once();  // warm-up
  std::array<double, 3> times{once()};
  if (times[0] > kLongRun) return times[0];
  times[1] = once();
  times[2] = once();
  std::ranges::sort(times);
  return times[1];
}

CostMeter::Cost CostMeter::cost_of(const ops::Selection& selection, std::size_t index) {
  constexpr double kMostFixed = 0.5;  // of the smallest run; more is noise
  const SelectedOp& op = selection.selected.ops[index];
  const std::int64_t many = images_to_time(selection.selected, op);
  const double long_run = std::max(0.0, measure(selection, index, many) - device_.op_seconds);
  if (many == 0) return {.image = long_run};
  const std::int64_t few = std::max<std::int64_t>(1, op.image_group);
  double fixed = 0;
  if (few < many) {
    const double short_run = std::max(0.0, measure(selection, index, few) - device_.op_seconds);
    const double image = (long_run - short_run) / static_cast<double>(many - few);
    fixed = std::clamp(short_run - image * static_cast<double>(few), 0.0, kMostFixed * short_run);
  }
  return {.run = fixed, .image = std::max(0.0, long_run - fixed) / static_cast<double>(many)};
}

void CostMeter::fill(const ops::Selection& selection, graph::Selected& out) {
  const Selected& selected = selection.selected;
  LANTERN_ASSERT(out.ops.size() == selected.ops.size(), "costs are of the ops that are selected");
  const TeamSize team(threads_);
  for (std::size_t i = 0; i < selected.ops.size(); ++i) {
    const SelectedOp& op = selected.ops[i];
    const auto [found, is_new] = costs_.try_emplace(signature(selected, op));
    if (is_new) found->second = cost_of(selection, i);
    out.ops[i].fixed_seconds = found->second.run;
    out.ops[i].seconds =
        found->second.image * (op.images > 0 ? static_cast<double>(op.images) : 1.0);
  }
}

}  // namespace lantern::exec
