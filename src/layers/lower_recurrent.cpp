#include "layers/recurrence.hpp"
#include "ops/concat/concat.hpp"

// [rnn], [crnn] and [history].
namespace lantern::layers {

using graph::TensorId;
using ops::Activation;

namespace {

struct PlainRecurrence {
  Activation activation, self_activation;
  bool shortcut;
  Shape state;
};

// s_t = [s_(t-1)] + input(x_t) + self(s_(t-1)); y_t = output(s_t).
void lower_plain(LowerContext& context, const Layer& layer, Recurrence& net,
                 const PlainRecurrence& plain) {
  const std::vector<TensorId> inputs =
      net.run_each("input.", plain.activation, context.previous(layer));
  TensorId state = net.initial_state("s", plain.state, Carry::kNever);
  std::vector<TensorId> states;
  for (std::size_t t = 0; t < net.steps(); ++t) {
    const TensorId self = net.run("self.", plain.self_activation, state, t);
    net.at(t, "state.");
    state = plain.shortcut ? net.add({state, inputs[t], self}) : net.add({inputs[t], self});
    states.push_back(state);
  }
  net.keep_state("s", state);
  context.set_output(layer.index, net.run_whole("output.", plain.activation, states));
}

}  // namespace

void lower_rnn(LowerContext& context, const Layer& layer, const RnnSpec& spec) {
  Recurrence net(context, layer, sub_layers(spec, layer.in), spec.batch_normalize != 0);
  const Activation self = spec.logistic == 1   ? Activation::kLogistic
                          : spec.logistic == 2 ? Activation::kLoggy
                                               : spec.activation;
  lower_plain(context, layer, net,
              {.activation = spec.activation,
               .self_activation = self,
               .shortcut = spec.shortcut != 0,
               .state = Shape{net.images(), spec.hidden, 1, 1}});
}

void lower_crnn(LowerContext& context, const Layer& layer, const CrnnSpec& spec) {
  if (spec.xnor != 0) {
    refuse(layer,
           "xnor convolutions are not supported: they need bit kernels that nothing else uses");
  }
  Recurrence net(context, layer, sub_layers(spec, layer.in), spec.batch_normalize != 0);
  lower_plain(context, layer, net,
              {.activation = spec.activation,
               .self_activation = spec.activation,
               .shortcut = spec.shortcut != 0,
               .state = Shape{net.images(), spec.hidden, layer.out.h, layer.out.w}});
}

// y_t = channels of x_t, x_(t-1), ...; frames before the first are zero. The gradient goes to the
// newest frame alone (reference/layers.md 4.23).
void lower_history(LowerContext& context, const Layer& layer, const HistorySpec& spec) {
  const TensorId x = context.previous(layer);
  if (spec.history_size == 1) {
    context.set_output(layer.index, x);
    return;
  }
  Recurrence net(context, layer, {}, false);
  const std::int64_t older = layer.in.c * (spec.history_size - 1);
  const std::vector<TensorId> frames = net.split(x);
  TensorId past = net.initial_state("frames", Shape{net.images(), older, layer.in.h, layer.in.w},
                                    Carry::kSequence);
  std::vector<TensorId> outputs;
  for (std::size_t t = 0; t < net.steps(); ++t) {
    net.at(t);
    const auto both = std::make_shared<const ops::ConcatParams>(
        std::vector<ops::ChannelSlice>{{0, layer.in.c}, {0, older}});
    outputs.push_back(net.op(ops::kConcatForward, both, {frames[t], past}, "frames"));
    const auto newest =
        std::make_shared<const ops::ConcatParams>(std::vector<ops::ChannelSlice>{{0, older}});
    context.graph().set_differentiable(false);
    past = net.op(ops::kConcatForward, newest, {outputs.back()}, "past");
    context.graph().set_differentiable(layer.common.onlyforward == 0);
  }
  net.keep_state("frames", past);
  context.set_output(layer.index, net.join(outputs));
}

}  // namespace lantern::layers
