#include <algorithm>

#include "ops/blocks.hpp"
#include "ops/conv/winograd.hpp"

namespace lantern::ops::winograd {

namespace {

// Another convolution with the same weights may want them as the library has them.
bool has_weights_alone(const graph::Op& op, const graph::Graph& graph) {
  return std::ranges::count_if(graph.ops(), [&](const graph::Op& other) {
           return std::ranges::count(other.inputs, op.inputs[1]) > 0;
         }) == 1;
}

// Operands: src, weights[, bias][, residual], dst, scratch.
class WinogradKernel final : public Kernel {
 public:
  WinogradKernel(const ConvParams& params, const Schedule& schedule, const Shape& source,
                 int threads)
      : geometry_(params.geometry),
        schedule_(schedule),
        epilogue_(params.epilogue),
        has_bias_(params.has_bias),
        source_(source, kBlock),
        source_first_(params.source_first),
        dst_({geometry_.n, geometry_.oc, geometry_.oh, geometry_.ow}, kBlock),
        threads_(threads) {}

  void run(std::span<void* const> o, const RunContext& context) override {
    const auto floats = [&](std::size_t i) { return static_cast<float*>(o[i]); };
    const std::size_t residual = has_bias_ ? 3 : 2;
    Image image{.src = floats(0) + source_first_ * source_.spatial,
                .weights = floats(1),
                .bias = has_bias_ ? floats(2) : nullptr,
                .residual = epilogue_.residual ? floats(residual) : nullptr,
                .dst = floats(epilogue_.residual ? residual + 1 : residual),
                .scratch = static_cast<float*>(o.back())};
    for (std::int64_t i = 0; i < context.images; ++i) {
      winograd::run(geometry_, schedule_, epilogue_, image, threads_);
      image.src += source_.offset(1, 0);
      image.dst += dst_.offset(1, 0);
      if (image.residual != nullptr) image.residual += dst_.offset(1, 0);
    }
  }

  static constexpr int kBlock = 16;

 private:
  ConvGeometry geometry_;
  Schedule schedule_;
  Epilogue epilogue_;
  bool has_bias_;
  BlockedExtents source_;
  std::int64_t source_first_;
  BlockedExtents dst_;
  int threads_;
};

}  // namespace

std::optional<KernelChoice> choose(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<ConvParams>();
  const ConvGeometry& g = params.geometry;
  if (!params.may_round || !has_weights_alone(op, context.graph)) return std::nullopt;
  const std::optional<Schedule> plan = schedule(g, context.block, context.threads);
  const Layout weights{.opaque = std::make_shared<const WeightsLayout>(g.oc, g.ic)};
  const std::optional<Layout>& fixed = context.layout(op.inputs[1]);
  if (!plan || (fixed && !(*fixed == weights))) return std::nullopt;
  const Layout data{.block = WinogradKernel::kBlock};
  KernelChoice choice{
      .name = plan->results == 4 ? "winograd:4x4" : "winograd:2x2",
      .inputs = {data, weights},
      .outputs = {data},
      .scratch = {plan->scratch(context.threads) * Bytes{sizeof(float)}},
      .images = g.n,
      .kernel = std::make_unique<WinogradKernel>(params, *plan, context.shape(op.inputs[0]),
                                                 context.threads)};
  if (params.has_bias) choice.inputs.emplace_back();
  if (params.epilogue.residual) choice.inputs.push_back(data);
  return choice;
}

}  // namespace lantern::ops::winograd
