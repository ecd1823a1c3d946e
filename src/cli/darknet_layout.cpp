#include "cli/darknet_layout.hpp"

namespace lantern::cli {

namespace {

using layers::Layer;
using ops::Activation;

bool keeps_its_input(Activation activation) {
  return activation == Activation::kMish || activation == Activation::kSwish ||
         activation == Activation::kHardMish;
}

// Bytes for every element of the output.
struct PerElement {
  bool gpu;

  // output and delta; x; x_norm on the CPU; activation_input.
  std::optional<int> operator()(const layers::ConvolutionalSpec& s) const {
    return 8 + normalized(s.batch_normalize) + (keeps_its_input(s.activation) ? 4 : 0);
  }
  std::optional<int> operator()(const layers::ConnectedSpec& s) const {
    return 8 + normalized(s.batch_normalize);
  }
  std::optional<int> operator()(const layers::BatchnormSpec&) const { return 8 + normalized(1); }
  std::optional<int> operator()(const layers::MaxpoolSpec&) const { return 12; }  // with indices
  std::optional<int> operator()(const layers::ShortcutSpec& s) const {
    return keeps_its_input(s.activation) ? 12 : 8;
  }
  // One random number; output and delta are those of the layer before.
  std::optional<int> operator()(const layers::DropoutSpec&) const { return 4; }
  std::optional<int> operator()(const layers::SoftmaxSpec&) const { return 12; }
  std::optional<int> operator()(const layers::CostSpec&) const { return 8; }
  std::optional<int> operator()(const layers::AvgpoolSpec&) const { return 8; }
  std::optional<int> operator()(const layers::LocalAvgpoolSpec&) const { return 8; }
  std::optional<int> operator()(const layers::RouteSpec&) const { return 8; }
  std::optional<int> operator()(const layers::UpsampleSpec&) const { return 8; }
  std::optional<int> operator()(const layers::ReorgSpec&) const { return 8; }
  std::optional<int> operator()(const layers::ScaleChannelsSpec&) const { return 8; }
  std::optional<int> operator()(const layers::SamSpec&) const { return 8; }
  std::optional<int> operator()(const layers::YoloSpec&) const { return 8; }
  std::optional<int> operator()(const layers::GaussianYoloSpec&) const { return 8; }
  std::optional<int> operator()(const layers::RegionSpec&) const { return 8; }
  template <typename Other>
  std::optional<int> operator()(const Other&) const {
    return std::nullopt;
  }

 private:
  int normalized(int batch_normalize) const {
    if (batch_normalize == 0) return 0;
    return gpu ? 4 : 8;
  }
};

}  // namespace

std::optional<DarknetLayout> darknet_layout(const layers::Network& network, bool gpu) {
  DarknetLayout layout;
  for (const Layer& layer : network.layers) {
    const std::optional<int> bytes = std::visit(PerElement{gpu}, layer.spec);
    if (!bytes) return std::nullopt;
    layout.per_image += *bytes * layer.out.elements();
  }
  constexpr Bytes kPerParameter = 8;  // value and update, which is the momentum as well
  layout.parameters = kPerParameter * network.parameters();
  return layout;
}

}  // namespace lantern::cli
