#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "exec/executor.hpp"
#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/select.hpp"
#include "plan/checker.hpp"
#include "plan/planner.hpp"

// Runs a few ops the way a network runs them: graph, select, plan, check, executor. All values are
// in plain order whatever the layout inside. Transients are poisoned before every run, so that a
// kernel which reads what it did not write, or forgets channel padding, yields NaN.

namespace lantern::test {

using Floats = std::vector<float>;

inline Floats random_floats(Rng& rng, std::int64_t count, float low = -1, float high = 1) {
  Floats values(static_cast<std::size_t>(count));
  for (float& v : values) v = rng.uniform(low, high);
  return values;
}

struct RunnerOptions {
  int block = 16;  ///< channel block of the data tensors
  int threads = 1;
  bool accumulate = false;  ///< gradients of sources start from given values and are added to
};

class OpRunner {
 public:
  explicit OpRunner(RunnerOptions options) : options_(options) {}

  graph::Graph& graph() { return graph_; }
  const RunnerOptions& options() const { return options_; }

  /// A data tensor that ops read; its gradient can be asked for. Rank 4 lies in channel blocks.
  graph::TensorId source(const std::string& name, const Shape& shape, Floats values) {
    const graph::TensorId fed = graph_.add_tensor(name + ".fed", {shape}, graph::Role::kInput);
    feeds_.emplace_back(fed, std::move(values));
    fed_.push_back(fed);
    const graph::TensorId tensor =
        op(ops::kCopy, std::make_shared<const graph::OpParams>(), {fed}, name)[0];
    sources_.push_back({tensor, fed});
    return tensor;
  }
  /// A parameter: its gradient adds up over subdivisions.
  graph::TensorId parameter(const std::string& name, const Shape& shape, Floats values) {
    const graph::TensorId made = graph_.add_tensor(name, {shape}, graph::Role::kParameter);
    feeds_.emplace_back(made, std::move(values));
    return made;
  }
  /// A tensor the host feeds, without gradient (truth).
  graph::TensorId input(const std::string& name, const Shape& shape, Floats values) {
    const graph::TensorId made = graph_.add_tensor(name, {shape}, graph::Role::kInput);
    feeds_.emplace_back(made, std::move(values));
    return made;
  }
  std::vector<graph::TensorId> op(const graph::OpDef& def,
                                  std::shared_ptr<const graph::OpParams> params,
                                  std::vector<graph::TensorId> inputs, const std::string& name) {
    return graph_.add_op(def, std::move(params), std::move(inputs), graph::ProgramKind::kMiniBatch,
                         0, name);
  }
  /// Keeps a copy of an f32 transient for value(); call before differentiate.
  void keep(graph::TensorId tensor) {
    const graph::TensorId copy = graph_.add_tensor(graph_.tensor(tensor).name + ".kept",
                                                   graph_.type(tensor), graph::Role::kState);
    graph_.add_op_to(ops::kCopy, std::make_shared<const graph::OpParams>(), {tensor}, {copy}, {},
                     graph::ProgramKind::kMiniBatch, 0);
    kept_.emplace(graph::index(tensor), copy);
  }
  /// Adds the backward pass for given (negative) gradients of some tensors; may be empty when a
  /// loss is in the graph. With options.accumulate every source's gradient starts from
  /// starting_gradient() of its size.
  void differentiate(std::vector<std::pair<graph::TensorId, Floats>> gradients) {
    graph::GradientBuilder builder(graph_, [](graph::TensorId) { return true; });
    for (const graph::TensorId fed : fed_) graph_.set_role(fed, graph::Role::kState);
    for (auto& [tensor, values] : gradients) seed(builder, tensor, std::move(values));
    if (options_.accumulate) {
      for (const Source& s : sources_) {
        if (!builder.gradient(s.tensor))
          seed(builder, s.tensor, starting_gradient(graph_.type(s.tensor).shape));
      }
    }
    builder.run();
    differentiated_ = true;
    for (const Source& s : sources_) {
      if (const auto d = builder.gradient(s.fed)) {
        if (graph_.tensor(*d).role == graph::Role::kGradient)
          graph_.set_role(*d, graph::Role::kState);
        gradients_.emplace(graph::index(s.tensor), *d);
      }
    }
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const auto id = static_cast<graph::TensorId>(i);
      if (graph_.tensor(id).role != graph::Role::kParameter) continue;
      if (const auto d = builder.gradient(id)) gradients_.emplace(i, *d);
    }
  }
  /// The values gradients start from with options.accumulate.
  static Floats starting_gradient(const Shape& shape) {
    Floats values(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.125F * static_cast<float>(i % 16) - 1.0F;
    return values;
  }

  /// Selects, plans, checks (first call) and runs the mini-batch program.
  void run(const ops::RunContext& context = {}) {
    if (!executor_) {
      if (!differentiated_) {
        for (const graph::TensorId fed : fed_) graph_.set_role(fed, graph::Role::kState);
      }
      graph_.verify();
      ops::Selection selection =
          ops::select(graph_, {.threads = options_.threads, .block = options_.block});
      plan::Program program = plan::make_program(selection.selected);
      plan::check(selection.selected, program);
      executor_ = std::make_unique<exec::Executor>(std::move(selection), std::move(program),
                                                   options_.threads);
    }
    for (const auto& [tensor, values] : feeds_) executor_->write(tensor, values);
    executor_->poison_transients();
    executor_->run(graph::ProgramKind::kMiniBatch, context);
  }
  exec::Executor& executor() { return *executor_; }

  /// A kept or persistent tensor.
  Floats value(graph::TensorId tensor) const {
    const auto found = kept_.find(graph::index(tensor));
    return checked(found == kept_.end() ? tensor : found->second);
  }
  /// Gradient of a source or parameter.
  Floats gradient(graph::TensorId tensor) const {
    return checked(gradients_.at(graph::index(tensor)));
  }
  bool has_gradient(graph::TensorId tensor) const {
    return gradients_.contains(graph::index(tensor));
  }

 private:
  struct Source {
    graph::TensorId tensor, fed;
  };
  // The values, after a look at the lanes beyond the last channel: whoever writes a tensor writes
  // zeros there.
  Floats checked(graph::TensorId tensor) const {
    const graph::SelectedTensor& info = executor_->selected().tensors[graph::index(tensor)];
    const int block = info.layout == "nChw16c" ? 16 : info.layout == "nChw8c" ? 8 : 1;
    if (block > 1) {
      const std::span<const std::byte> bytes = executor_->bytes(tensor);
      Floats raw(bytes.size() / sizeof(float));
      std::memcpy(raw.data(), bytes.data(), raw.size() * sizeof(float));
      const std::int64_t blocks = ceil_div(info.shape.c(), block);
      const std::int64_t plane = info.shape.h() * info.shape.w() * block;
      for (std::size_t i = 0; i < raw.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        if (at / plane % blocks * block + at % block < info.shape.c()) continue;
        if (raw[i] != 0.0F) {
          ADD_FAILURE() << info.name << ": channel padding holds " << raw[i] << ", want 0";
          break;
        }
      }
    }
    return executor_->read(tensor);
  }
  void seed(graph::GradientBuilder& builder, graph::TensorId tensor, Floats values) {
    const graph::TensorId made = builder.target(tensor).tensor;
    graph_.set_role(made, graph::Role::kState);
    feeds_.emplace_back(made, std::move(values));
  }

  RunnerOptions options_;
  graph::Graph graph_;
  std::vector<std::pair<graph::TensorId, Floats>> feeds_;
  std::vector<graph::TensorId> fed_;
  std::vector<Source> sources_;
  std::map<std::size_t, graph::TensorId> kept_, gradients_;
  bool differentiated_ = false;
  std::unique_ptr<exec::Executor> executor_;
};

inline void expect_close(const Floats& got, const Floats& want, float tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double squares = 0;
  for (const float v : want) squares += static_cast<double>(v) * v;
  const double rms = std::sqrt(squares / std::max<double>(1, static_cast<double>(want.size())));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - want[i]), tolerance * std::max(rms, 1e-3))
        << what << " element " << i << " is " << got[i] << ", want " << want[i];
  }
}

/// Calls body(options) for every block, with one and three threads, overwriting and accumulating.
template <typename Body>
void for_each_way(Body body) {
  for (const int block : {1, 8, 16}) {
    for (const int threads : {1, 3}) {
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "block " << block << ", threads " << threads
                                          << (accumulate ? ", accumulate" : ", overwrite"));
        body(RunnerOptions{.block = block, .threads = threads, .accumulate = accumulate});
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// What a gradient starts from: zeros, or the runner's values when it accumulates.
inline Floats initial_gradient(const RunnerOptions& options, const Shape& shape) {
  if (options.accumulate) return OpRunner::starting_gradient(shape);
  return Floats(static_cast<std::size_t>(shape.elements()), 0.0F);
}

}  // namespace lantern::test
