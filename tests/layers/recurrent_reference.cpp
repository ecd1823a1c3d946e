#include "layers/recurrent_reference.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/activation/activation_ref.hpp"
#include "ops/conv/conv_ref.hpp"

namespace lantern::test {

using layers::ConvLstmSpec;
using layers::CrnnSpec;
using layers::GruSpec;
using layers::HistorySpec;
using layers::LstmSpec;
using layers::RnnSpec;
using ops::Activation;

namespace {

Values sum(const Values& a, const Values& b) {
  Values y(a);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += b[i];
  return y;
}

Values product(const Values& a, const Values& b) {
  Values y(a);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= b[i];
  return y;
}

// Batch norm per channel over images and positions; rolling values move by 0.01.
void normalise(Values& y, std::int64_t channels, std::int64_t spatial, Arrays& arrays,
               const std::string& part, bool training) {
  const std::int64_t images = static_cast<std::int64_t>(y.size()) / channels / spatial;
  const auto count = static_cast<double>(images * spatial);
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto k = static_cast<std::size_t>(c);
    const auto each = [&](const auto& body) {
      for (std::int64_t n = 0; n < images; ++n) {
        for (std::int64_t s = 0; s < spatial; ++s)
          body(y[static_cast<std::size_t>((n * channels + c) * spatial + s)]);
      }
    };
    double& rolling_mean = arrays.at(part + "rolling_mean")[k];
    double& rolling_variance = arrays.at(part + "rolling_variance")[k];
    double mean = rolling_mean;
    double variance = rolling_variance;
    if (training) {
      mean = variance = 0;
      each([&](double v) { mean += v / count; });
      each([&](double v) { variance += (v - mean) * (v - mean) / count; });
      rolling_mean = 0.99 * rolling_mean + 0.01 * mean;
      rolling_variance = 0.99 * rolling_variance + 0.01 * variance * count / (count - 1);
    }
    const double scale = arrays.at(part + "scales")[k] / std::sqrt(variance + 1e-5);
    const double bias = arrays.at(part + "biases")[k];
    each([&](double& v) { v = (v - mean) * scale + bias; });
  }
}

struct Kernel {
  std::int64_t size = 0, padding = 0, groups = 1;  // size 0: a connected layer
};

Kernel kernel_of(const layers::Spec& spec) {
  if (const auto* crnn = std::get_if<CrnnSpec>(&spec))
    return {crnn->size, crnn->padding, crnn->groups};
  if (const auto* lstm = std::get_if<ConvLstmSpec>(&spec))
    return {lstm->size, lstm->padding, lstm->groups};
  return {};
}

bool normalised(const layers::Spec& spec) {
  return std::visit(
      [](const auto& s) {
        if constexpr (requires { s.batch_normalize; }) return s.batch_normalize != 0;
        return false;
      },
      spec);
}

}  // namespace

RecurrentReference::RecurrentReference(const layers::Layer& layer, std::int64_t images,
                                       int time_steps)
    : layer_(layer),
      images_(images),
      spatial_(layer.out.w * layer.out.h),
      time_steps_(time_steps) {}

Values RecurrentReference::activated(Values x, Activation activation) const {
  for (double& v : x) v = ops::ref::activate(activation, v);
  return x;
}

Values RecurrentReference::apply(const std::string& part, Activation activation, const Values& x) {
  const Values& weights = arrays_->at(part + "weights");
  const Values& biases = arrays_->at(part + "biases");
  const bool has_norm = normalised(layer_.spec);
  const Kernel kernel = kernel_of(layer_.spec);
  const auto outputs = static_cast<std::int64_t>(biases.size());
  // A connected layer is a convolution of 1 x 1 maps.
  const std::int64_t w = kernel.size == 0 ? 1 : layer_.out.w;
  const std::int64_t h = kernel.size == 0 ? 1 : layer_.out.h;
  ops::ConvGeometry g{.n = images_, .ih = h, .iw = w, .oc = outputs, .oh = h, .ow = w};
  g.ic = static_cast<std::int64_t>(x.size()) / images_ / h / w;
  g.kh = g.kw = std::max<std::int64_t>(1, kernel.size);
  g.ph = g.pw = kernel.padding;
  g.groups = kernel.groups;
  Values y(static_cast<std::size_t>(images_ * outputs * h * w));
  ops::ref::conv_forward(g, x.data(), weights.data(), has_norm ? nullptr : biases.data(), y.data());
  if (has_norm) normalise(y, outputs, h * w, *arrays_, part, training_);
  return activated(std::move(y), activation);
}

Values& RecurrentReference::state(const std::string& name, std::int64_t values_per_image) {
  Values& values = states[name];
  if (values.empty()) values.assign(static_cast<std::size_t>(images_ * values_per_image), 0.0);
  return values;
}

Values RecurrentReference::held(const Values& x, double part) {
  if (recording_) {
    held_.push_back(x);
    return x;
  }
  if (held_.empty()) return x;
  const Values& before = held_.at(next_held_++);
  Values y(x);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = part * x[i] + (1 - part) * before[i];
  return y;
}

Values RecurrentReference::joined_channels(const Values& a, std::int64_t ca, const Values& b,
                                           std::int64_t cb) const {
  Values y;
  const auto append = [&](const Values& from, std::int64_t channels, std::int64_t image) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(image * channels * spatial_);
    y.insert(y.end(), begin, begin + static_cast<std::ptrdiff_t>(channels * spatial_));
  };
  for (std::int64_t n = 0; n < images_; ++n) {
    append(a, ca, n);
    append(b, cb, n);
  }
  return y;
}

Values RecurrentReference::plain_step(const Values& x) {
  Activation activation = Activation::kLinear;
  std::int64_t hidden = 0;
  bool shortcut = false;
  std::optional<Activation> own;
  if (const auto* rnn = std::get_if<RnnSpec>(&layer_.spec)) {
    activation = rnn->activation;
    hidden = rnn->hidden;
    shortcut = rnn->shortcut != 0;
    if (rnn->logistic == 1) own = Activation::kLogistic;
    if (rnn->logistic == 2) own = Activation::kLoggy;
  } else {
    const auto& crnn = std::get<CrnnSpec>(layer_.spec);
    activation = crnn.activation;
    hidden = crnn.hidden * spatial_;
    shortcut = crnn.shortcut != 0;
  }
  Values& s = state("s", hidden);
  const Values in = apply("input.", activation, x);
  const Values self = apply("self.", own.value_or(activation), s);
  s = shortcut ? sum(s, sum(in, self)) : sum(in, self);
  return apply("output.", activation, s);
}

Values RecurrentReference::gru_step(const Values& x) {
  Values& h = state("h", std::get<GruSpec>(layer_.spec).output);
  const auto gate = [&](const std::string& which, const Values& from) {
    return activated(sum(apply("input_" + which, Activation::kLinear, x),
                         apply("state_" + which, Activation::kLinear, from)),
                     Activation::kLogistic);
  };
  const Values z = gate("z.", h);
  const Values r = gate("r.", h);
  const Values c = gate("h.", product(r, h));
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = z[i] * h[i] + (1 - z[i]) * c[i];
  return h;
}

Values RecurrentReference::lstm_step(const Values& x) {
  Values& h = state("h", std::get<LstmSpec>(layer_.spec).output);
  Values& c = state("c", std::get<LstmSpec>(layer_.spec).output);
  const auto gate = [&](const std::string& which, Activation activation) {
    return activated(
        sum(apply("w" + which, Activation::kLinear, h), apply("u" + which, Activation::kLinear, x)),
        activation);
  };
  const Values f = gate("f.", Activation::kLogistic);
  const Values i = gate("i.", Activation::kLogistic);
  const Values g = gate("g.", Activation::kTanh);
  const Values o = gate("o.", Activation::kLogistic);
  c = sum(product(f, c), product(i, g));
  h = product(o, activated(c, Activation::kTanh));
  return h;
}

Values RecurrentReference::conv_lstm_step(const Values& x) {
  const auto& spec = std::get<ConvLstmSpec>(layer_.spec);
  const bool bottleneck = spec.bottleneck != 0;
  const std::int64_t channels = layer_.out.c;
  Values& h = state("h", channels * spatial_);
  Values& c = state("c", channels * spatial_);
  Values z;
  if (bottleneck) {
    const Values before = held(h, static_cast<double>(spec.time_normalizer));
    z = activated(apply("wf.", spec.activation, joined_channels(before, channels, x, layer_.in.c)),
                  spec.lstm_activation);
  }
  const auto gate = [&](const std::string& which, Activation activation, const Values* cell) {
    Values y = apply("u" + which, spec.activation, bottleneck ? z : x);
    if (!bottleneck) y = sum(y, apply("w" + which, spec.activation, h));
    if (spec.peephole != 0 && cell != nullptr)
      y = sum(y, apply("v" + which, spec.activation, *cell));
    return activated(std::move(y), activation);
  };
  const Values f = gate("f.", Activation::kLogistic, &c);
  const Values i = gate("i.", Activation::kLogistic, &c);
  const Values g = gate("g.", spec.lstm_activation, nullptr);
  c = sum(product(f, c), product(i, g));
  const Values o = gate("o.", Activation::kLogistic, &c);
  h = product(o, activated(c, spec.lstm_activation));
  if (spec.shortcut != 0) {
    for (std::size_t k = 0; k < h.size(); ++k) {
      const auto channel = static_cast<std::int64_t>(k) / spatial_ % channels;
      if (channel < channels / 2) h[k] += z[k];
    }
  }
  const double limit = spec.state_constrain >= 0 ? spec.state_constrain : 32 * time_steps_;
  for (double& v : c) v = limit > 0 ? std::clamp(v, -limit, limit) : v;
  return h;
}

Values RecurrentReference::history_step(const Values& x) {
  const std::int64_t older = layer_.out.c - layer_.in.c;
  Values& past = state("frames", older * spatial_);
  const Values y = joined_channels(x, layer_.in.c, held(past, 0), older);
  for (std::int64_t n = 0; n < images_; ++n) {
    std::copy_n(y.begin() + static_cast<std::ptrdiff_t>(n * layer_.out.c * spatial_),
                older * spatial_, past.begin() + static_cast<std::ptrdiff_t>(n * older * spatial_));
  }
  return y;
}

Values RecurrentReference::run(const Values& input, Arrays& arrays, bool training) {
  arrays_ = &arrays;
  training_ = training;
  const auto count = static_cast<std::size_t>(images_ * layer_.in.elements());
  Values output;
  for (std::size_t at = 0; at < input.size(); at += count) {
    const Values x(input.begin() + static_cast<std::ptrdiff_t>(at),
                   input.begin() + static_cast<std::ptrdiff_t>(at + count));
    const Values y = std::visit(
        [&](const auto& spec) -> Values {
          using S = std::decay_t<decltype(spec)>;
          if constexpr (std::is_same_v<S, GruSpec>) return gru_step(x);
          if constexpr (std::is_same_v<S, LstmSpec>) return lstm_step(x);
          if constexpr (std::is_same_v<S, ConvLstmSpec>) return conv_lstm_step(x);
          if constexpr (std::is_same_v<S, HistorySpec>) return history_step(x);
          return plain_step(x);
        },
        layer_.spec);
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace lantern::test
