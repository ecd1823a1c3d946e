#include "exec/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "plan/checker.hpp"
#include "plan/cost.hpp"
#include "plan/planner.hpp"

namespace lantern::exec {

using graph::ProgramKind;
using graph::TensorId;

Compiled select(const layers::Network& network, const ModelOptions& options) {
  Compiled result;
  result.lowered = layers::lower(network, {.training = options.training,
                                           .mini_batch = options.mini_batch,
                                           .forward_batch = options.forward_batch,
                                           .forward_sequences = options.forward_sequences,
                                           .fuse_layers = options.fuse_layers,
                                           .input_gradient = options.input_gradient,
                                           .fold = options.fold});
  result.selection = ops::select(result.lowered.graph,
                                 {.threads = options.threads, .fixed = options.shared.layouts});
  if (options.costs) {
    options.costs(result.selection, result.selection.selected);
  } else {
    plan::set_costs(result.selection.selected, options.device);
  }
  return result;
}

void make_plan(Compiled& compiled, const ModelOptions& options) {
  plan::PlanOptions plan = options.plan;
  plan.places = options.shared.places;
  compiled.program = plan::make_program(compiled.selection.selected, plan);
  plan::check(compiled.selection.selected, compiled.program);
}

Compiled compile(const layers::Network& network, const ModelOptions& options) {
  Compiled result = select(network, options);
  make_plan(result, options);
  return result;
}

SharedState state_of(const Compiled& compiled) {
  auto places = std::make_shared<plan::Places>(
      plan::places_of(compiled.selection.selected, compiled.program));
  auto layouts = std::make_shared<ops::NamedLayouts>();
  for (std::size_t i = 0; i < compiled.selection.selected.tensors.size(); ++i) {
    const std::string& name = compiled.selection.selected.tensors[i].name;
    if (places->offsets.contains(name)) (*layouts)[name] = compiled.selection.layouts[i];
  }
  return {std::move(layouts), std::move(places)};
}

namespace {
void fill_zero(std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{0}); }
}  // namespace

Model::Model(layers::Network network, const ModelOptions& options)
    : Model(network, options, compile(network, options)) {}

Model::Model(layers::Network network, const ModelOptions& options, Compiled compiled)
    : network_(std::move(network)), options_(options) {
  lowered_ = std::move(compiled.lowered);
  ExecutorOptions executor;
  if (options_.executor) executor = options_.executor(compiled.program);
  executor.threads = options_.threads;
  executor_ = std::make_unique<Executor>(std::move(compiled.selection), std::move(compiled.program),
                                         executor);
  // In a shared arena the programs of others may have lain where pictures leave their state.
  for (const layers::StateBinding& state : lowered_.states) {
    if (state.program == ProgramKind::kForward) fill_zero(executor_->bytes(state.tensor));
  }
}

void Model::initialise(std::uint64_t seed) {
  for (std::size_t i = 0; i < lowered_.parameters.size(); ++i) {
    const layers::ParameterBinding& binding = lowered_.parameters[i];
    const Shape& shape = lowered_.graph.type(binding.tensor).shape;
    std::vector<float> values(static_cast<std::size_t>(shape.elements()), 0.0F);
    const layers::Layer& layer = network_.layers[static_cast<std::size_t>(binding.layer)];
    if (binding.start) {
      Rng rng(seed, "initial " + binding.array, 0, static_cast<std::uint32_t>(layer.index));
      for (float& value : values)
        value = binding.start->mean + rng.uniform(-1.0F, 1.0F) * binding.start->reach;
    } else if (binding.array == "scales" || binding.array.ends_with(".scales")) {
      std::ranges::fill(values, 1.0F);
    } else if (layers::is_weights(binding.array) && shape.rank() >= 2) {
      const auto fan_in = static_cast<float>(shape.elements() / shape[0]);
      const float reach = std::sqrt(2.0F / fan_in);
      Rng rng(seed, "initial " + binding.array, 0, static_cast<std::uint32_t>(layer.index));
      for (float& value : values) value = rng.uniform(-1.0F, 1.0F) * reach;
    } else if (binding.array == "weights") {
      std::ranges::fill(values, 1.0F);  // weights of a shortcut
    }
    set_parameter(i, values);
  }
}

void Model::set_parameter(std::size_t binding, std::span<const float> values) {
  const layers::ParameterBinding& entry = lowered_.parameters[binding];
  executor_->write(entry.tensor, values);
  if (entry.next) executor_->write(*entry.next, values);
}

void Model::get_parameter(std::size_t binding, std::span<float> values) const {
  executor_->read(lowered_.parameters[binding].tensor, values);
}

std::span<const float> Model::view_parameter(std::size_t binding) const {
  return view(lowered_.parameters[binding].tensor);
}

std::span<const float> Model::view(graph::TensorId tensor) const {
  const std::span<float> values =
      room_for(static_cast<std::size_t>(lowered_.graph.type(tensor).shape.elements()));
  executor_->read(tensor, values);
  return values;
}

std::span<float> Model::room_for(std::size_t count) const {
  const std::span<std::byte> room = executor_->transients();
  const std::span<float> values(reinterpret_cast<float*>(room.data()), room.size() / sizeof(float));
  if (values.size() >= count) return values.first(count);
  view_.resize(std::max(view_.size(), count));
  return std::span(view_).first(count);
}

namespace {
void feed(Executor& executor, TensorId tensor, std::span<const float> values) {
  const std::span<std::byte> bytes = executor.bytes(tensor);
  LANTERN_ASSERT(values.size_bytes() == bytes.size(), "an input is fed whole");
  std::memcpy(bytes.data(), values.data(), bytes.size());
}
}  // namespace

void Model::run_mini_batch(std::span<const float> images, std::span<const float> truth,
                           const ops::RunContext& context) {
  feed(*executor_, *lowered_.images, images);
  if (!lowered_.losses.empty()) feed(*executor_, lowered_.losses.front().truth, truth);
  executor_->run(ProgramKind::kMiniBatch, context);
}

std::vector<LossReport> Model::losses() const {
  std::vector<LossReport> reports;
  for (const layers::LossBinding& loss : lowered_.losses) {
    LossReport report{.layer = loss.layer};
    const std::span<const std::byte> bytes = executor_->bytes(loss.cost);
    if (loss.yolo) {
      const std::span<const ops::YoloImageStats> images(
          reinterpret_cast<const ops::YoloImageStats*>(bytes.data()),
          static_cast<std::size_t>(options_.mini_batch));
      report.yolo = ops::combine(images);
      report.cost = ops::yolo_cost(*loss.yolo, *report.yolo);
    } else {
      const auto* costs = reinterpret_cast<const double*>(bytes.data());
      for (std::int64_t i = 0; i < options_.mini_batch; ++i) report.cost += costs[i];
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::optional<std::string> Model::find_non_finite_gradient(const ops::RunContext& context) {
  if (!lowered_.finite_flags) return std::nullopt;
  executor_->run(ProgramKind::kCheck, context);
  const auto* flags =
      reinterpret_cast<const float*>(executor_->bytes(*lowered_.finite_flags).data());
  for (std::size_t i = 0; i < lowered_.checked.size(); ++i) {
    if (flags[i] != 0) return lowered_.graph.tensor(lowered_.checked[i]).name;
  }
  return std::nullopt;
}

void Model::update(const ops::RunContext& context) {
  executor_->run(ProgramKind::kUpdate, context);
}

void Model::abandon_iteration() {
  for (const layers::ParameterBinding& binding : lowered_.parameters) {
    if (!binding.next) continue;
    const std::span<const std::byte> committed = executor_->bytes(binding.tensor);
    std::memcpy(executor_->bytes(*binding.next).data(), committed.data(), committed.size());
  }
  for (const layers::StateBinding& state : lowered_.states) {
    if (!state.committed) continue;
    const std::span<const std::byte> committed = executor_->bytes(*state.committed);
    std::memcpy(executor_->bytes(state.tensor).data(), committed.data(), committed.size());
  }
}

void Model::forget_states() {
  for (const layers::StateBinding& state : lowered_.states) {
    fill_zero(executor_->bytes(state.tensor));
    if (state.committed) fill_zero(executor_->bytes(*state.committed));
  }
}

std::optional<std::string> Model::find_non_finite_tensor(const ops::RunContext& context) {
  return executor_->find_non_finite(ProgramKind::kMiniBatch, context);
}

void Model::forward(std::span<const float> images) {
  feed(*executor_, *lowered_.forward_images, images);
  executor_->run(ProgramKind::kForward, {});
}

}  // namespace lantern::exec
