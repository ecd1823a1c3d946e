#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/error.hpp"
#include "ops/onednn.hpp"
#include "ops/parallel.hpp"
#include "ops/tied_filters/tied_filters.hpp"

namespace lantern::ops {

using graph::Op;

namespace {

// Between the layout of weights and plain order.
class Weights {
 public:
  Weights(const Layout& layout, std::int64_t count) : count_(count) {
    if (!layout.opaque) return;
    const dnnl::memory::desc& own = onednn::desc_of(layout);
    const dnnl::memory::desc plain = onednn::plain_desc(own);
    load_.emplace(onednn::reorder_call(own, plain));
    store_.emplace(onednn::reorder_call(plain, own));
  }
  std::int64_t count() const { return count_; }
  void load(void* from, float* plain) {
    if (load_) {
      load_->execute({from, plain});
    } else {
      std::memcpy(plain, from, static_cast<std::size_t>(count_) * sizeof(float));
    }
  }
  void store(float* plain, void* to) {
    if (store_) {
      store_->execute({plain, to});
    } else {
      std::memcpy(to, plain, static_cast<std::size_t>(count_) * sizeof(float));
    }
  }

 private:
  std::int64_t count_;
  std::optional<onednn::Call> load_, store_;
};

// Kernels of one part.
std::int64_t kernels_of_part(const TiedFiltersParams& p, std::int64_t count) {
  return count / (p.size * p.size) / ref::tie_parts(p.tie);
}

// All parts of u turned back into `turned`, then all of u the mean of them.
void average_parts(const TiedFiltersParams& p, std::int64_t count, float* u, float* turned,
                   int threads) {
  const std::int64_t area = p.size * p.size;
  const std::int64_t parts = ref::tie_parts(p.tie);
  const std::int64_t kernels = kernels_of_part(p, count);
  parallel_for(kernels, threads, [&](std::int64_t kernel) {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t at = (part * kernels + kernel) * area;
      ref::tie_kernel(p.tie, p.angle, part, true, p.size, u + at, turned + at);
    }
    for (std::int64_t i = 0; i < area; ++i) {
      float sum = 0;
      for (std::int64_t part = 0; part < parts; ++part)
        sum += turned[(part * kernels + kernel) * area + i];
      for (std::int64_t part = 0; part < parts; ++part)
        u[(part * kernels + kernel) * area + i] = sum / static_cast<float>(parts);
    }
  });
}

void centre_filters(std::int64_t filters, std::int64_t count, float* u, int threads) {
  const std::int64_t length = count / filters;
  parallel_for(filters, threads, [&](std::int64_t filter) {
    float* values = u + filter * length;
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += static_cast<double>(values[i]);
    const auto mean = static_cast<float>(sum / static_cast<double>(length));
    for (std::int64_t i = 0; i < length; ++i) values[i] -= mean;
  });
}

// Operands: gradient[, momentum], dst, and three times the weights in plain order.
class FilterGradientKernel final : public Kernel {
 public:
  FilterGradientKernel(const TiedFiltersParams& params, Weights weights, bool momentum, int threads)
      : params_(params), weights_(std::move(weights)), momentum_(momentum), threads_(threads) {}

  void run(std::span<void* const> o, const RunContext& run) override {
    const std::int64_t count = weights_.count();
    void* dst = o[momentum_ ? 2 : 1];
    auto* u = static_cast<float*>(o[momentum_ ? 3 : 2]);
    auto* momentum = static_cast<float*>(o[momentum_ ? 4 : 3]);
    auto* turned = static_cast<float*>(o[momentum_ ? 5 : 4]);
    weights_.load(o[0], u);
    if (momentum_) {
      weights_.load(o[1], momentum);
      for (std::int64_t i = 0; i < count; ++i) u[i] += momentum[i];
    }
    if (params_.ties(run)) average_parts(params_, count, u, turned, threads_);
    if (params_.centre) centre_filters(params_.filters, count, u, threads_);
    if (momentum_) {
      for (std::int64_t i = 0; i < count; ++i) u[i] -= momentum[i];
    }
    weights_.store(u, dst);
  }

 private:
  TiedFiltersParams params_;
  Weights weights_;
  bool momentum_;
  int threads_;
};

// Operands: weights, and twice the weights in plain order.
class TieFiltersKernel final : public Kernel {
 public:
  TieFiltersKernel(const TiedFiltersParams& params, Weights weights, int threads)
      : params_(params), weights_(std::move(weights)), threads_(threads) {}

  void run(std::span<void* const> o, const RunContext& run) override {
    if (!params_.ties(run) || run.iteration < params_.first_iteration) return;
    const std::int64_t area = params_.size * params_.size;
    const std::int64_t kernels = kernels_of_part(params_, weights_.count());
    auto* before = static_cast<float*>(o[1]);
    auto* after = static_cast<float*>(o[2]);
    weights_.load(o[0], before);
    parallel_for(kernels * ref::tie_parts(params_.tie), threads_, [&](std::int64_t job) {
      ref::tie_kernel(params_.tie, params_.angle, job / kernels, false, params_.size,
                      before + job % kernels * area, after + job * area);
    });
    weights_.store(after, o[0]);
  }

 private:
  TiedFiltersParams params_;
  Weights weights_;
  int threads_;
};

}  // namespace

std::string TiedFiltersParams::describe() const {
  const char* name = tie == FilterTie::kSway          ? "sway"
                     : tie == FilterTie::kRotate      ? "rotate"
                     : tie == FilterTie::kStretch     ? "stretch"
                     : tie == FilterTie::kStretchSway ? "stretch_sway"
                                                      : "none";
  return fmt::format("tie={} angle={}{}", name, angle, centre ? " centre" : "");
}

bool TiedFiltersParams::ties(const RunContext& run) const {
  return tie != FilterTie::kNone && 2 * (run.iteration - 1) < run.max_iterations;
}

const graph::OpDef kFilterGradient{.name = "filter_gradient"};
const graph::OpDef kTieFilters{.name = "tie_filters"};

KernelChoice choose_filter_gradient(const Op& op, const SelectContext& context) {
  const TiedFiltersParams params = op.params_as<TiedFiltersParams>();
  const Layout layout = context.layout(params.weights).value_or(Layout{});
  const std::int64_t count = context.shape(op.inputs[0]).elements();
  const Bytes plain = count * static_cast<Bytes>(sizeof(float));
  return {.name = "cpu",
          .inputs = std::vector<Layout>(op.inputs.size(), layout),
          .outputs = {layout},
          .scratch = {plain, plain, plain},
          .kernel = std::make_unique<FilterGradientKernel>(params, Weights(layout, count),
                                                           op.inputs.size() > 1, context.threads)};
}

KernelChoice choose_tie_filters(const Op& op, const SelectContext& context) {
  const TiedFiltersParams params = op.params_as<TiedFiltersParams>();
  const Layout layout = context.layout(params.weights).value_or(Layout{});
  const std::int64_t count = context.shape(op.outputs[0]).elements();
  const Bytes plain = count * static_cast<Bytes>(sizeof(float));
  return {.name = "cpu",
          .outputs = {layout},
          .scratch = {plain, plain},
          .kernel =
              std::make_unique<TieFiltersKernel>(params, Weights(layout, count), context.threads)};
}

}  // namespace lantern::ops
