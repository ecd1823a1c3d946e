#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lantern::ops {

/// Pointwise (and two kinds of per-pixel channel) activations of the cfg format; formulas in
/// activation_ref.hpp.
enum class Activation : std::uint8_t {
  kLinear,
  kLeaky,
  kRelu,
  kRelu6,
  kRelie,
  kRamp,
  kLogistic,
  kLoggy,
  kTanh,
  kElu,
  kSelu,
  kGelu,
  kSwish,
  kMish,
  kHardMish,
  kPlse,
  kHardtan,
  kLhtan,
  kStair,
  kRevleaky,
  kNormalizeChannels,
  kNormalizeChannelsSoftmax,
  kNormalizeChannelsSoftmaxMaxval,
};

struct ActivationName {
  std::string_view name;
  Activation value;
};

/// The one table from which the parser, the writer and the help read activation names.
inline constexpr std::array kActivationNames{
    ActivationName{"linear", Activation::kLinear},
    ActivationName{"leaky", Activation::kLeaky},
    ActivationName{"relu", Activation::kRelu},
    ActivationName{"relu6", Activation::kRelu6},
    ActivationName{"relie", Activation::kRelie},
    ActivationName{"ramp", Activation::kRamp},
    ActivationName{"logistic", Activation::kLogistic},
    ActivationName{"loggy", Activation::kLoggy},
    ActivationName{"tanh", Activation::kTanh},
    ActivationName{"elu", Activation::kElu},
    ActivationName{"selu", Activation::kSelu},
    ActivationName{"gelu", Activation::kGelu},
    ActivationName{"swish", Activation::kSwish},
    ActivationName{"mish", Activation::kMish},
    ActivationName{"hard_mish", Activation::kHardMish},
    ActivationName{"plse", Activation::kPlse},
    ActivationName{"hardtan", Activation::kHardtan},
    ActivationName{"lhtan", Activation::kLhtan},
    ActivationName{"stair", Activation::kStair},
    ActivationName{"revleaky", Activation::kRevleaky},
    ActivationName{"normalize_channels", Activation::kNormalizeChannels},
    ActivationName{"normalize_channels_softmax", Activation::kNormalizeChannelsSoftmax},
    ActivationName{"normalize_channels_softmax_maxval",
                   Activation::kNormalizeChannelsSoftmaxMaxval},
};

constexpr std::string_view to_string(Activation activation) {
  for (const ActivationName& entry : kActivationNames) {
    if (entry.value == activation) return entry.name;
  }
  return "?";
}

/// True when the derivative is a function of the output y alone; otherwise backward needs the
/// pre-activation x.
constexpr bool derivative_from_output(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
    case Activation::kSwish:
    case Activation::kMish:
    case Activation::kHardMish:
    case Activation::kNormalizeChannels:
    case Activation::kNormalizeChannelsSoftmax:
    case Activation::kNormalizeChannelsSoftmaxMaxval:
      return false;
    default:
      return true;
  }
}

/// True for the kinds that mix the channels of one pixel.
constexpr bool mixes_channels(Activation activation) {
  return activation == Activation::kNormalizeChannels ||
         activation == Activation::kNormalizeChannelsSoftmax ||
         activation == Activation::kNormalizeChannelsSoftmaxMaxval;
}

}  // namespace lantern::ops
