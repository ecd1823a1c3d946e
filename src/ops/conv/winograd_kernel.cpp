#include "ops/conv/own_conv.hpp"
#include "ops/conv/winograd.hpp"

namespace lantern::ops::winograd {

namespace {

class WinogradKernel final : public OwnConvKernel {
 public:
  WinogradKernel(const ConvParams& params, const Schedule& schedule, const Shape& source,
                 int threads)
      : OwnConvKernel(params, source), schedule_(schedule), threads_(threads) {}

 private:
  void run_image(const ConvImage& image) override {
    winograd::run(params().geometry, schedule_, params().epilogue, image, threads_);
  }
  Schedule schedule_;
  int threads_;
};

}  // namespace

std::optional<KernelChoice> choose(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<ConvParams>();
  const ConvGeometry& g = params.geometry;
  const std::optional<Schedule> plan = schedule(g, context.block, context.threads);
  if (!plan) return std::nullopt;
  return choose_placed(op, context, plan->results == 4 ? "winograd:4x4" : "winograd:2x2",
                       PanelPlaces{g.oc, g.ic},
                       {plan->scratch(context.threads) * Bytes{sizeof(float)}},
                       std::make_unique<WinogradKernel>(params, *plan, context.shape(op.inputs[0]),
                                                        context.threads));
}

}  // namespace lantern::ops::winograd
