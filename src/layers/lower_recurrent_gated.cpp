#include "layers/recurrence.hpp"
#include "ops/concat/concat.hpp"
#include "ops/gates/gates.hpp"

// [gru], [lstm] and [conv_lstm].
namespace lantern::layers {

using graph::TensorId;
using ops::Activation;

namespace {

void check_state_can_follow(const LowerContext& context, const Layer& layer) {
  if (context.training() && context.network().net.dynamic_minibatch != 0) {
    refuse(layer,
           "its state goes on from mini-batch to mini-batch and cannot follow "
           "dynamic_minibatch=1; remove that key");
  }
}

}  // namespace

// z = s(input_z(x) + state_z(h)), r likewise, c = s(input_h(x) + state_h(r * h)),
// h' = z * h + (1 - z) * c.
// Darknet: the candidate goes through the logistic function, not tanh (reference/layers.md 4.20).
void lower_gru(LowerContext& context, const Layer& layer, const GruSpec& spec) {
  check_state_can_follow(context, layer);
  Recurrence net(context, layer, sub_layers(spec, layer.in), spec.batch_normalize != 0);
  const TensorId x = context.previous(layer);
  const auto of_x = [&](std::string_view part) {
    return net.run_each(part, Activation::kLinear, x);
  };
  const std::vector<TensorId> xz = of_x("input_z.");
  const std::vector<TensorId> xr = of_x("input_r.");
  const std::vector<TensorId> xh = of_x("input_h.");
  TensorId h = net.initial_state("h", Shape{net.images(), spec.output, 1, 1}, Carry::kAlways);
  std::vector<TensorId> outputs;
  for (std::size_t t = 0; t < net.steps(); ++t) {
    const auto gate = [&](std::string_view what, std::string_view part, TensorId from_x,
                          TensorId state) {
      const TensorId from_state = net.run(part, Activation::kLinear, state, t);
      net.at(t, what);
      return net.activate(net.add({from_x, from_state}), Activation::kLogistic);
    };
    const TensorId z = gate("z.", "state_z.", xz[t], h);
    const TensorId r = gate("r.", "state_r.", xr[t], h);
    const TensorId candidate = gate("c.", "state_h.", xh[t], net.multiply(r, h));
    net.at(t, "h.");
    h = net.op(ops::kBlendForward, std::make_shared<const graph::OpParams>(), {z, h, candidate},
               "blend");
    outputs.push_back(h);
  }
  net.keep_state("h", h);
  net.at(0);
  context.set_output(layer.index, net.join(outputs));
}

// f, i, o = s(w(h) + u(x)), g = tanh(wg(h) + ug(x)), c' = f * c + i * g, h' = o * tanh(c').
void lower_lstm(LowerContext& context, const Layer& layer, const LstmSpec& spec) {
  check_state_can_follow(context, layer);
  Recurrence net(context, layer, sub_layers(spec, layer.in), spec.batch_normalize != 0);
  const TensorId x = context.previous(layer);
  const auto of_x = [&](std::string_view part) {
    return net.run_each(part, Activation::kLinear, x);
  };
  const std::vector<TensorId> xf = of_x("uf.");
  const std::vector<TensorId> xi = of_x("ui.");
  const std::vector<TensorId> xg = of_x("ug.");
  const std::vector<TensorId> xo = of_x("uo.");
  const Shape state{net.images(), spec.output, 1, 1};
  TensorId h = net.initial_state("h", state, Carry::kAlways);
  TensorId c = net.initial_state("c", state, Carry::kAlways);
  std::vector<TensorId> outputs;
  for (std::size_t t = 0; t < net.steps(); ++t) {
    const auto gate = [&](std::string_view what, std::string_view part, TensorId from_x,
                          Activation activation) {
      const TensorId from_h = net.run(part, Activation::kLinear, h, t);
      net.at(t, what);
      return net.activate(net.add({from_x, from_h}), activation);
    };
    const TensorId f = gate("f.", "wf.", xf[t], Activation::kLogistic);
    const TensorId i = gate("i.", "wi.", xi[t], Activation::kLogistic);
    const TensorId g = gate("g.", "wg.", xg[t], Activation::kTanh);
    const TensorId o = gate("o.", "wo.", xo[t], Activation::kLogistic);
    net.at(t, "c.");
    c = net.add({net.multiply(f, c), net.multiply(i, g)});
    net.at(t, "h.");
    h = net.multiply(o, net.activate(c, Activation::kTanh));
    outputs.push_back(h);
  }
  net.keep_state("h", h);
  net.keep_state("c", c);
  net.at(0);
  context.set_output(layer.index, net.join(outputs));
}

namespace {

// One [conv_lstm] while its time steps are added.
class ConvLstm {
 public:
  ConvLstm(LowerContext& context, const Layer& layer, const ConvLstmSpec& spec)
      : context_(context),
        layer_(layer),
        spec_(spec),
        net_(context, layer, sub_layers(spec, layer.in), spec.batch_normalize != 0) {}

  void lower() {
    const TensorId x = context_.previous(layer_);
    if (spec_.bottleneck != 0) {
      frames_ = net_.split(x);
    } else {
      for (std::size_t k = 0; k < kGates.size(); ++k)
        from_x_[k] = net_.run_each(kGates[k].u, spec_.activation, x);
    }
    const Shape state{net_.images(), layer_.out.c, layer_.out.h, layer_.out.w};
    h_ = net_.initial_state("h", state, Carry::kSequence);
    c_ = net_.initial_state("c", state, Carry::kSequence);
    std::vector<TensorId> outputs;
    for (std::size_t t = 0; t < net_.steps(); ++t) {
      add_step(t);
      outputs.push_back(h_);
    }
    net_.keep_state("h", h_);
    net_.keep_state("c", c_);
    net_.at(0);
    context_.set_output(layer_.index, net_.join(outputs));
  }

 private:
  struct Gate {
    std::string_view name, w, u, v;
  };
  enum : std::size_t { kForget, kInput, kCandidate, kOutput };
  static constexpr std::array<Gate, 4> kGates{{{"f.", "wf.", "uf.", "vf."},
                                               {"i.", "wi.", "ui.", "vi."},
                                               {"g.", "wg.", "ug.", ""},
                                               {"o.", "wo.", "uo.", "vo."}}};

  // z = L(wf([h, x])): what the gates see in the place of state and input. The channels of h come
  // first, image by image.
  // Darknet: joins the whole batches of both, which mixes images (reference/layers.md L37).
  TensorId bottleneck(std::size_t t) {
    net_.at(t, "bottleneck.");
    TensorId h = h_;
    if (context_.training() && spec_.time_normalizer != 1) {
      h = net_.op(ops::kGradientFactor,
                  std::make_shared<const ops::FactorParams>(spec_.time_normalizer), {h}, "h");
    }
    const auto slices = std::make_shared<const ops::ConcatParams>(
        std::vector<ops::ChannelSlice>{{0, layer_.out.c}, {0, layer_.in.c}});
    const TensorId both = net_.op(ops::kConcatForward, slices, {h, frames_[t]}, "both");
    const TensorId z = net_.run("wf.", spec_.activation, both, t);
    net_.at(t, "bottleneck.");
    return net_.activate(z, spec_.lstm_activation);
  }

  TensorId gate(std::size_t k, std::size_t t, std::optional<TensorId> z, TensorId c) {
    const Gate& names = kGates[k];
    std::vector<TensorId> terms;
    if (z) {
      terms = {net_.run(names.u, spec_.activation, *z, t)};
    } else {
      terms = {net_.run(names.w, spec_.activation, h_, t), from_x_[k][t]};
    }
    if (spec_.peephole != 0 && !names.v.empty())
      terms.push_back(net_.run(names.v, spec_.activation, c, t));
    net_.at(t, names.name);
    const TensorId sum = terms.size() == 1 ? terms[0] : net_.add(std::move(terms));
    return net_.activate(sum, k == kCandidate ? spec_.lstm_activation : Activation::kLogistic);
  }

  void add_step(std::size_t t) {
    std::optional<TensorId> z;
    if (spec_.bottleneck != 0) z = bottleneck(t);
    const TensorId f = gate(kForget, t, z, c_);
    const TensorId i = gate(kInput, t, z, c_);
    const TensorId g = gate(kCandidate, t, z, c_);
    net_.at(t, "c.");
    TensorId c = net_.add({net_.multiply(f, c_), net_.multiply(i, g)});
    const TensorId o = gate(kOutput, t, z, c);  // through the peephole it sees the new cell
    net_.at(t, "h.");
    h_ = net_.multiply(o, net_.activate(c, spec_.lstm_activation));
    if (spec_.shortcut != 0) h_ = net_.add({h_, half_of(*z)});
    const int limit =
        spec_.state_constrain >= 0 ? spec_.state_constrain : 32 * context_.network().net.time_steps;
    net_.at(t, "c.");
    if (limit > 0) {
      c = net_.op(ops::kClampForward,
                  std::make_shared<const ops::FactorParams>(static_cast<float>(limit)), {c},
                  "clamped");
    }
    c_ = c;
  }

  // The partial residual: the first half of the channels.
  TensorId half_of(TensorId z) {
    const auto slice = std::make_shared<const ops::ConcatParams>(
        std::vector<ops::ChannelSlice>{{0, layer_.out.c / 2}});
    return net_.op(ops::kConcatForward, slice, {z}, "half");
  }

  LowerContext& context_;
  const Layer& layer_;
  const ConvLstmSpec& spec_;
  Recurrence net_;
  std::array<std::vector<TensorId>, 4> from_x_;  // without a bottleneck
  std::vector<TensorId> frames_;                 // with one
  TensorId h_{}, c_{};
};

}  // namespace

void lower_conv_lstm(LowerContext& context, const Layer& layer, const ConvLstmSpec& spec) {
  if (spec.xnor != 0) {
    refuse(layer,
           "xnor convolutions are not supported: they need bit kernels that nothing else uses");
  }
  if (spec.bottleneck == 0) {
    if (spec.shortcut != 0) refuse(layer, "shortcut=1 needs bottleneck=1");
    if (context.training() && spec.time_normalizer != 1)
      refuse(layer, "time_normalizer needs bottleneck=1");
  }
  if (spec.shortcut != 0 && spec.output < 2)
    refuse(layer, "shortcut=1 adds half of the channels and needs output=2 or more");
  ConvLstm(context, layer, spec).lower();
}

}  // namespace lantern::layers
