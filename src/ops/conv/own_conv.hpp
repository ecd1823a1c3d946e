#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/blocks.hpp"
#include "ops/conv/conv.hpp"
#include "ops/kernel.hpp"

// What the forward convolutions of our own have in common. They read and write channel blocks of 16
// and weights in an order of their own, and are for inference programs: they do not sum in the
// order of the library's.
namespace lantern::ops {

/// Their registers hold a whole channel block; in several smaller ones they lose to the library.
#if defined(__AVX512F__)
inline constexpr bool kOwnConvIsFast = true;
#else
inline constexpr bool kOwnConvIsFast = false;
#endif

/// Addresses of one image.
struct ConvImage {
  const float* src;  ///< first channel that is read
  const float* weights;
  const float* bias;      ///< or null
  const float* residual;  ///< or null
  float* dst;
  float* scratch;  ///< or null
};

/// Takes the images of a run one by one. Operands: src, weights[, bias][, residual], dst[,
/// scratch].
class OwnConvKernel : public Kernel {
 public:
  static constexpr int kBlock = 16;

  OwnConvKernel(const ConvParams& params, const Shape& source)
      : params_(params),
        source_(source, kBlock),
        dst_({params.geometry.n, params.geometry.oc, params.geometry.oh, params.geometry.ow},
             kBlock) {}

  void run(std::span<void* const> o, const RunContext& context) final {
    const auto floats = [&](std::size_t i) { return static_cast<float*>(o[i]); };
    const std::size_t residual = params_.has_bias ? 3 : 2;
    const std::size_t dst = params_.epilogue.residual ? residual + 1 : residual;
    ConvImage image{.src = floats(0) + params_.source_first * source_.spatial,
                    .weights = floats(1),
                    .bias = params_.has_bias ? floats(2) : nullptr,
                    .residual = params_.epilogue.residual ? floats(residual) : nullptr,
                    .dst = floats(dst),
                    .scratch = dst + 1 < o.size() ? floats(dst + 1) : nullptr};
    for (std::int64_t i = 0; i < context.images; ++i) {
      run_image(image);
      image.src += source_.offset(1, 0);
      image.dst += dst_.offset(1, 0);
      if (image.residual != nullptr) image.residual += dst_.offset(1, 0);
    }
  }

 protected:
  const ConvParams& params() const { return params_; }

 private:
  virtual void run_image(const ConvImage& image) = 0;

  ConvParams params_;
  BlockedExtents source_, dst_;
};

/// Weights of which each stands where Places says, zero in between. Places has kName, floats(),
/// plain_floats(), == and (index in plain order) -> index.
template <typename Places>
class PlacedWeights final : public OpaqueLayout {
 public:
  explicit PlacedWeights(const Places& places) : places_(places) {}
  Bytes bytes() const override { return places_.floats() * Bytes{sizeof(float)}; }
  std::string describe() const override { return std::string(Places::kName); }
  bool equals(const OpaqueLayout& other) const override {
    const auto* same = dynamic_cast<const PlacedWeights*>(&other);
    return same != nullptr && same->places_ == places_;
  }
  void to_plain(const void* physical, float* plain) const override {
    for (std::int64_t i = 0; i < places_.plain_floats(); ++i)
      plain[i] = static_cast<const float*>(physical)[places_(i)];
  }
  void from_plain(const float* plain, void* physical) const override {
    auto* values = static_cast<float*>(physical);
    std::fill_n(values, places_.floats(), 0.0F);
    for (std::int64_t i = 0; i < places_.plain_floats(); ++i) values[places_(i)] = plain[i];
  }

 private:
  Places places_;
};

/// Whether a convolution may run otherwise than by the library, with weights in another order:
/// nobody else reads them.
bool may_be_own(const graph::Op& op, const SelectContext& context);

/// Nothing where the weights lie otherwise already.
template <typename Places>
std::optional<KernelChoice> choose_placed(const graph::Op& op, const SelectContext& context,
                                          std::string name, const Places& places,
                                          std::vector<Bytes> scratch,
                                          std::unique_ptr<OwnConvKernel> kernel) {
  const auto& params = op.params_as<ConvParams>();
  const Layout data{.block = OwnConvKernel::kBlock};
  const Layout weights{.opaque = std::make_shared<const PlacedWeights<Places>>(places)};
  const std::optional<Layout>& fixed = context.layout(op.inputs[1]);
  if (fixed && !(*fixed == weights)) return std::nullopt;
  KernelChoice choice{.name = std::move(name),
                      .inputs = {data, weights},
                      .outputs = {data},
                      .scratch = std::move(scratch),
                      .images = params.geometry.n,
                      .groups = params.geometry.groups,
                      .kernel = std::move(kernel)};
  if (params.has_bias) choice.inputs.emplace_back();
  if (params.epilogue.residual) choice.inputs.push_back(data);
  return choice;
}

}  // namespace lantern::ops
