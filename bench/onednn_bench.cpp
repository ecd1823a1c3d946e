// oneDNN's own batch normalisation (with a leaky activation behind it) and max pooling in the same
// channel blocks, and its gradient of weights over the whole mini-batch in one call, to compare the
// engine's kernels with: those sum image group by image group, so that no plan changes a bit.

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "op_bench.hpp"
#include "ops/layout.hpp"
#include "ops/onednn.hpp"

namespace lantern::bench {

namespace {

using dnnl::memory;
using dnnl::prop_kind;
namespace onednn = ops::onednn;

/// Primitives in the order in which they run, over memory of their own.
class PrimitiveChain {
 public:
  /// Memory filled with some values; zeros for types other than f32.
  memory make(const memory::desc& desc) {
    memory made(desc, onednn::engine());
    if (desc.data_type() == memory::data_type::f32 && desc.get_size() > 0) {
      const auto count = static_cast<std::int64_t>(desc.get_size() / sizeof(float));
      std::memcpy(made.get_data_handle(), some_values(count).data(), desc.get_size());
    } else if (desc.get_size() > 0) {
      std::memset(made.get_data_handle(), 0, desc.get_size());
    }
    return made;
  }
  void run_once(const dnnl::primitive& primitive,
                const std::unordered_map<int, memory>& arguments) {
    primitive.execute(stream_, arguments);
    stream_.wait();
  }
  void add(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments,
           double bytes) {
    steps_.push_back({primitive, std::move(arguments)});
    bytes_ += bytes;
  }
  void run(benchmark::State& state, const std::string& label) {
    execute();
    for (auto _ : state) execute();
    set_counters(state, 0, bytes_);
    state.SetLabel(label);
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
  };
  void execute() {
    for (Step& step : steps_) step.primitive.execute(stream_, step.arguments);
    stream_.wait();
  }
  dnnl::stream stream_{onednn::engine()};
  std::vector<Step> steps_;
  double bytes_ = 0;
};

double size_of(const memory::desc& desc) { return static_cast<double>(desc.get_size()); }

void batch_norm(benchmark::State& state, const Options& options, const Map& map, bool backward) {
  constexpr float kEpsilon = 1e-5F;
  constexpr float kSlope = 0.1F;
  constexpr auto kFlags = dnnl::normalization_flags::use_scale_shift;
  const memory::desc desc =
      onednn::data_desc({options.mini_batch, map.c, map.side, map.side}, ops::preferred_block());
  const dnnl::batch_normalization_forward::primitive_desc forward(
      {prop_kind::forward_training, desc, kEpsilon, kFlags}, onednn::engine());
  // The activation in place over the output; backward takes its sign from the output, as the
  // engine's does.
  const auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
  const dnnl::eltwise_forward::primitive_desc leaky(
      {prop_kind::forward_training, algorithm, desc, kSlope}, onednn::engine());
  PrimitiveChain chain;
  const memory x = chain.make(desc), y = chain.make(desc);
  const memory mean = chain.make(forward.mean_desc()),
               variance = chain.make(forward.variance_desc());
  const memory scale_shift = chain.make(forward.weights_desc());
  const std::unordered_map<int, memory> forward_arguments{{DNNL_ARG_SRC, x},
                                                          {DNNL_ARG_SCALE_SHIFT, scale_shift},
                                                          {DNNL_ARG_MEAN, mean},
                                                          {DNNL_ARG_VARIANCE, variance},
                                                          {DNNL_ARG_DST, y}};
  if (!backward) {
    chain.add(dnnl::batch_normalization_forward(forward), forward_arguments, 3 * size_of(desc));
    chain.add(dnnl::eltwise_forward(leaky), {{DNNL_ARG_SRC, y}, {DNNL_ARG_DST, y}},
              2 * size_of(desc));
    chain.run(state, forward.impl_info_str());
    return;
  }
  const dnnl::batch_normalization_backward::primitive_desc normalize(
      {prop_kind::backward, desc, desc, kEpsilon, kFlags}, onednn::engine(), forward);
  const dnnl::eltwise_backward::primitive_desc slope({algorithm, desc, desc, kSlope},
                                                     onednn::engine(), leaky);
  chain.run_once(dnnl::batch_normalization_forward(forward), forward_arguments);
  const memory dy = chain.make(desc), dz = chain.make(desc), dx = chain.make(desc);
  const memory diff_scale_shift = chain.make(normalize.diff_weights_desc());
  chain.add(dnnl::eltwise_backward(slope),
            {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dz}},
            3 * size_of(desc));
  chain.add(dnnl::batch_normalization_backward(normalize),
            {{DNNL_ARG_SRC, x},
             {DNNL_ARG_MEAN, mean},
             {DNNL_ARG_VARIANCE, variance},
             {DNNL_ARG_SCALE_SHIFT, scale_shift},
             {DNNL_ARG_DIFF_DST, dz},
             {DNNL_ARG_DIFF_SRC, dx},
             {DNNL_ARG_DIFF_SCALE_SHIFT, diff_scale_shift}},
            5 * size_of(desc));
  chain.run(state, normalize.impl_info_str());
}

void max_pool(benchmark::State& state, const Options& options, const Pool& pool, bool backward) {
  const std::int64_t out = (pool.side - 1) / pool.stride + 1;
  const std::int64_t pad = (pool.size - 1) / 2;
  const std::int64_t rest = (out - 1) * pool.stride + pool.size - pool.side - pad;
  const int block = ops::preferred_block();
  const memory::desc src_desc =
      onednn::data_desc({options.mini_batch, pool.c, pool.side, pool.side}, block);
  const memory::desc dst_desc = onednn::data_desc({options.mini_batch, pool.c, out, out}, block);
  const memory::dims strides{pool.stride, pool.stride}, window{pool.size, pool.size},
      left{pad, pad}, right{rest, rest};
  const dnnl::pooling_forward::primitive_desc forward(
      {prop_kind::forward_training, dnnl::algorithm::pooling_max, src_desc, dst_desc, strides,
       window, left, right},
      onednn::engine());
  PrimitiveChain chain;
  const memory src = chain.make(src_desc), dst = chain.make(dst_desc),
               index = chain.make(forward.workspace_desc());
  const double bytes = size_of(src_desc) + size_of(dst_desc) + size_of(forward.workspace_desc());
  const std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}, {DNNL_ARG_WORKSPACE, index}};
  if (!backward) {
    chain.add(dnnl::pooling_forward(forward), arguments, bytes);
    chain.run(state, forward.impl_info_str());
    return;
  }
  const dnnl::pooling_backward::primitive_desc gradient(
      {dnnl::algorithm::pooling_max, src_desc, dst_desc, strides, window, left, right},
      onednn::engine(), forward);
  chain.run_once(dnnl::pooling_forward(forward), arguments);
  chain.add(dnnl::pooling_backward(gradient),
            {{DNNL_ARG_DIFF_DST, chain.make(dst_desc)},
             {DNNL_ARG_DIFF_SRC, chain.make(src_desc)},
             {DNNL_ARG_WORKSPACE, index}},
            bytes);
  chain.run(state, gradient.impl_info_str());
}

void backward_weights(benchmark::State& state, const Options& options, const Conv& conv) {
  const auto data = [&](std::int64_t channels) {
    return onednn::data_desc({options.mini_batch, channels, conv.side, conv.side},
                             channels == 3 ? 1 : ops::preferred_block());
  };
  const memory::desc weights({conv.out, conv.in, conv.size, conv.size}, memory::data_type::f32,
                             memory::format_tag::any);
  const memory::dims strides{1, 1}, padding{conv.size / 2, conv.size / 2};
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc hint(
      {prop_kind::forward_training, algorithm, data(conv.in), weights, data(conv.out), strides,
       padding, padding},
      onednn::engine());
  const dnnl::convolution_backward_weights::primitive_desc gradient(
      {algorithm, data(conv.in), weights, data(conv.out), strides, padding, padding},
      onednn::engine(), hint);
  PrimitiveChain chain;
  chain.add(dnnl::convolution_backward_weights(gradient),
            {{DNNL_ARG_SRC, chain.make(gradient.src_desc())},
             {DNNL_ARG_DIFF_DST, chain.make(gradient.diff_dst_desc())},
             {DNNL_ARG_DIFF_WEIGHTS, chain.make(gradient.diff_weights_desc())}},
            size_of(gradient.src_desc()) + size_of(gradient.diff_dst_desc()) +
                size_of(gradient.diff_weights_desc()));
  chain.run(state, gradient.impl_info_str());
}

}  // namespace

void add_onednn_benchmarks(const Options& options) {
  const auto add = [](const std::string& name, auto body) {
    benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime()->Unit(benchmark::kMillisecond);
  };
  for (const Conv& conv : kConvs) {
    add("onednn_backward_weights/" + name_of(conv),
        [=](benchmark::State& state) { backward_weights(state, options, conv); });
  }
  for (const bool backward : {false, true}) {
    const std::string direction = backward ? "backward/" : "forward/";
    for (const Map& map : kBatchNormMaps) {
      add("onednn_batch_norm_" + direction + name_of(map),
          [=](benchmark::State& state) { batch_norm(state, options, map, backward); });
    }
    for (const Pool& pool : kPools) {
      add("onednn_max_pool_" + direction + name_of(pool),
          [=](benchmark::State& state) { max_pool(state, options, pool, backward); });
    }
  }
}

}  // namespace lantern::bench
