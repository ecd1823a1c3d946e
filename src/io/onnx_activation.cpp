#include "io/onnx_builder.hpp"
#include "ops/activation/activation_ref.hpp"

namespace lantern::io::onnx {

namespace {

// numerator / (1e-4 + sum of the numerators over the channels)
std::string normalised(Builder& b, const std::string& numerator) {
  const std::string sum = b.node("ReduceSum", {numerator, b.constant({1})}, {{"keepdims", 1L}});
  const auto epsilon = static_cast<float>(ops::ref::kNormalizeChannelsEpsilon);
  return b.node("Div", {numerator, b.add(sum, b.scalar(epsilon))});
}

// clip(x) by `inner` plus what lies outside by `outer`.
std::string two_slopes(Builder& b, const std::string& x, float low, float high, float inner,
                       float shift, float outer) {
  const std::string middle = b.clip(x, low, high);
  std::string line = b.scaled(middle, inner);
  if (shift != 0) line = b.add(line, b.scalar(shift));
  return b.add(line, b.scaled(b.node("Sub", {x, middle}), outer));
}

}  // namespace

std::string activation_nodes(Builder& b, const std::string& x, ops::Activation activation,
                             std::int64_t channels) {
  using ops::Activation;
  switch (activation) {
    case Activation::kLinear:
      return x;
    case Activation::kLeaky:
    case Activation::kRevleaky:
      return b.node("LeakyRelu", {x}, {{"alpha", 0.1F}});
    case Activation::kRelu:
      return b.node("Relu", {x});
    case Activation::kRelu6:
      return b.clip(x, 0, 6);
    case Activation::kRelie:
      return b.node("LeakyRelu", {x}, {{"alpha", 0.01F}});
    case Activation::kRamp:
      return b.add(b.node("Relu", {x}), b.scaled(x, 0.1F));
    case Activation::kLogistic:
      return b.node("Sigmoid", {x});
    case Activation::kLoggy:
      return b.add(b.scaled(b.node("Sigmoid", {x}), 2), b.scalar(-1));
    case Activation::kTanh:
      return b.node("Tanh", {x});
    case Activation::kElu:
      return b.node("Elu", {x}, {{"alpha", 1.0F}});
    case Activation::kSelu:
      return b.node("Selu", {x}, {{"alpha", 1.6732F}, {"gamma", 1.0507F}});
    case Activation::kGelu: {
      const std::string cube = b.mul(b.mul(x, x), x);
      const std::string inner = b.add(b.scaled(x, 0.797885F), b.scaled(cube, 0.035677F));
      return b.mul(b.scaled(x, 0.5F), b.add(b.node("Tanh", {inner}), b.scalar(1)));
    }
    case Activation::kSwish:
      return b.mul(x, b.node("Sigmoid", {x}));
    case Activation::kMish:
      return b.mul(x, b.node("Tanh", {b.node("Softplus", {x})}));
    case Activation::kHardMish: {
      const std::string u = b.clip(x, -2, 0);
      return b.add(b.node("Relu", {x}), b.add(b.scaled(b.mul(u, u), 0.5F), u));
    }
    case Activation::kPlse:
      return two_slopes(b, x, -4, 4, 0.125F, 0.5F, 0.01F);
    case Activation::kHardtan:
      return b.clip(x, -1, 1);
    case Activation::kLhtan:
      return two_slopes(b, x, 0, 1, 1, 0, 0.001F);
    case Activation::kStair: {
      const std::string n = b.node("Floor", {x});
      const std::string half = b.node("Floor", {b.scaled(x, 0.5F)});
      const std::string pairs = b.scaled(b.node("Floor", {b.scaled(n, 0.5F)}), 2);
      const std::string odd = b.node("Sub", {n, pairs});  // 0 or 1
      return b.add(half, b.mul(odd, b.node("Sub", {x, n})));
    }
    case Activation::kNormalizeChannels:
      return normalised(b, b.node("Relu", {x}));
    case Activation::kNormalizeChannelsSoftmax:
      return normalised(b, b.node("Exp", {x}));
    case Activation::kNormalizeChannelsSoftmaxMaxval: {
      const std::string largest =
          b.node("ReduceMax", {x}, {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", 1L}});
      return normalised(b, b.node("Exp", {b.node("Sub", {x, b.spread(largest, channels)})}));
    }
  }
  return x;
}

}  // namespace lantern::io::onnx
