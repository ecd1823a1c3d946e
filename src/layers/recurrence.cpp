#include "layers/recurrence.hpp"

#include <algorithm>

#include "ops/add/add.hpp"
#include "ops/conv/conv.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/linear/linear.hpp"
#include "ops/scale/scale.hpp"
#include "ops/sequence/initial_state.hpp"
#include "ops/sequence/sequence.hpp"

namespace lantern::layers {

using graph::ProgramKind;
using graph::Role;
using graph::TensorId;

namespace {

std::shared_ptr<const graph::OpParams> none() { return std::make_shared<const graph::OpParams>(); }

std::string joined(std::string_view a, std::string_view b) { return std::string(a).append(b); }

Shape weights_shape(const SubLayer& part) {
  if (!part.conv) return {part.outputs, part.inputs};
  return {part.outputs, part.inputs / part.conv->groups, part.conv->size, part.conv->size};
}

// Mini-batches that one sequence spans; only with track=1 do the loader's frames go on from one to
// the next (reference/training.md section 8).
std::optional<ops::SequenceLength> sequence_length(const NetSpec& net) {
  if (net.track == 0 || net.subdivisions == 1) return std::nullopt;
  ops::SequenceLength length{.subdivisions = net.subdivisions,
                             .sequential = net.sequential_subdivisions};
  const bool has_steps = net.policy == Policy::kSteps || net.policy == Policy::kSgdr;
  if (has_steps && !net.seq_scales.empty()) {
    length.steps = net.steps;
    length.factors.assign(net.seq_scales.begin(),
                          net.seq_scales.begin() + static_cast<std::ptrdiff_t>(net.steps.size()));
  }
  if (length.steps.empty() && length.at(0) == 1) return std::nullopt;
  return length;
}

}  // namespace

std::vector<ParameterArray> arrays_of(const std::vector<SubLayer>& parts, bool batch_normalize) {
  std::vector<ParameterArray> arrays;
  for (const SubLayer& part : parts) {
    if (part.conv) {
      append_conv_arrays(arrays, part.name, part.outputs, part.conv->weights(), batch_normalize);
    } else {
      append_connected_arrays(arrays, part.name, part.inputs, part.outputs, batch_normalize);
    }
  }
  return arrays;
}

Recurrence::Recurrence(LowerContext& context, const Layer& layer, std::vector<SubLayer> parts,
                       bool batch_normalize)
    : context_(context),
      layer_(layer),
      parts_(std::move(parts)),
      batch_normalize_(batch_normalize),
      steps_(context.training()
                 ? context.network().net.time_steps
                 : context.options().forward_batch / context.options().forward_sequences) {
  for (const SubLayer& part : parts_) {
    const Shape outputs{part.outputs};
    const auto declare_weights = [&] {
      context_.parameter(layer_, joined(part.name, "weights"), weights_shape(part));
    };
    context_.parameter(layer_, joined(part.name, "biases"), outputs);
    if (!part.conv) declare_weights();  // the order of the weights file
    if (batch_normalize_) {
      context_.parameter(layer_, joined(part.name, "scales"), outputs);
      context_.state(layer_, joined(part.name, "rolling_mean"), outputs);
      context_.state(layer_, joined(part.name, "rolling_variance"), outputs);
    }
    if (part.conv) declare_weights();
  }
}

void Recurrence::at(std::size_t t, std::string_view what) {
  context_.set_part({}, steps_ == 1 ? std::string(what) : fmt::format("t{}.{}", t, what));
}

void Recurrence::name_part(const SubLayer& part, std::optional<std::size_t> t) {
  const bool one = !t || steps_ == 1;
  context_.set_part(std::string(part.name),
                    one ? std::string(part.name) : fmt::format("t{}.{}", *t, part.name));
}

TensorId Recurrence::op(const graph::OpDef& def, std::shared_ptr<const graph::OpParams> params,
                        std::vector<TensorId> inputs, const std::string& what) {
  return context_.add(def, std::move(params), std::move(inputs), layer_, what)[0];
}

std::vector<TensorId> Recurrence::split(TensorId whole) {
  if (steps_ == 1) return {whole};
  const std::int64_t all = context_.images();
  const std::int64_t count = images();
  std::vector<TensorId> parts;
  for (std::int64_t t = 0; t < steps_; ++t) {
    parts.push_back(op(ops::kSliceImages,
                       std::make_shared<const ops::ImageRangeParams>(t * count, count, all),
                       {whole}, fmt::format("slice{}", t)));
  }
  return parts;
}

TensorId Recurrence::join(const std::vector<TensorId>& steps) {
  return steps_ == 1 ? steps[0] : op(ops::kJoinImages, none(), steps, "joined");
}

const SubLayer& Recurrence::part(std::string_view name) const {
  const auto found =
      std::ranges::find_if(parts_, [&](const SubLayer& part) { return part.name == name; });
  LANTERN_ASSERT(found != parts_.end(), "a recurrent section runs sub-layers that it has");
  return *found;
}

TensorId Recurrence::product(const SubLayer& part, TensorId x) {
  const TensorId weights =
      context_.parameter(layer_, joined(part.name, "weights"), weights_shape(part));
  std::vector<TensorId> operands{x, weights};
  if (!batch_normalize_) {
    operands.push_back(
        context_.parameter(layer_, joined(part.name, "biases"), Shape{part.outputs}));
  }
  if (!part.conv) return op(ops::kLinearForward, none(), std::move(operands), "linear");
  const Shape in = context_.shape(x);
  const ConvShape& conv = *part.conv;
  const std::int64_t padding = conv.padding * conv.dilation;
  const ops::ConvGeometry g{.n = in.n(),
                            .ic = in.c(),
                            .ih = in.h(),
                            .iw = in.w(),
                            .oc = part.outputs,
                            .oh = layer_.out.h,
                            .ow = layer_.out.w,
                            .groups = conv.groups,
                            .kh = conv.size,
                            .kw = conv.size,
                            .sh = conv.stride_y,
                            .sw = conv.stride_x,
                            .ph = padding,
                            .pw = padding,
                            .dh = conv.dilation,
                            .dw = conv.dilation};
  return op(ops::kConvForward, std::make_shared<const ops::ConvParams>(g, !batch_normalize_),
            std::move(operands), "conv");
}

TensorId Recurrence::finish(const SubLayer& part, ops::Activation activation, TensorId y) {
  y = batch_normalize_ ? context_.batch_norm(y, activation, std::nullopt, layer_)
                       : context_.activate(y, activation, layer_);
  // What holds for [connected] holds for a connected sub-layer.
  if (!part.conv && context_.training()) y = op(ops::kClampGradient, none(), {y}, "out");
  return y;
}

TensorId Recurrence::run(std::string_view name, ops::Activation activation, TensorId x,
                         std::size_t t) {
  const SubLayer& sub = part(name);
  name_part(sub, t);
  return finish(sub, activation, product(sub, x));
}

std::vector<TensorId> Recurrence::run_each(std::string_view name, ops::Activation activation,
                                           TensorId whole) {
  const SubLayer& sub = part(name);
  name_part(sub, std::nullopt);
  const TensorId y = product(sub, whole);
  if (!batch_normalize_) return split(finish(sub, activation, y));
  std::vector<TensorId> parts = split(y);
  for (std::size_t t = 0; t < parts.size(); ++t) {
    name_part(sub, t);
    parts[t] = finish(sub, activation, parts[t]);
  }
  return parts;
}

TensorId Recurrence::run_whole(std::string_view name, ops::Activation activation,
                               const std::vector<TensorId>& steps) {
  const SubLayer& sub = part(name);
  context_.set_part({}, {});
  const TensorId whole = join(steps);
  if (batch_normalize_) {
    const std::vector<TensorId> parts = run_each(name, activation, whole);
    name_part(sub, std::nullopt);
    return join(parts);
  }
  name_part(sub, std::nullopt);
  return finish(sub, activation, product(sub, whole));
}

TensorId Recurrence::add(std::vector<TensorId> terms) {
  return op(ops::kAddForward, none(), std::move(terms), "sum");
}

TensorId Recurrence::multiply(TensorId a, TensorId b) {
  return op(ops::kScaleForward, std::make_shared<const ops::ScaleParams>(ops::ScaleKind::kElement),
            {a, b}, "product");
}

TensorId Recurrence::activate(TensorId x, ops::Activation activation) {
  return context_.activate(x, activation, layer_);
}

TensorId Recurrence::initial_state(const std::string& name, const Shape& shape, Carry in_training) {
  context_.set_part({}, {});
  const bool training = context_.training();
  std::optional<ops::SequenceLength> length;
  bool carries = true;
  if (training && in_training != Carry::kAlways) {
    if (in_training == Carry::kSequence) length = sequence_length(context_.network().net);
    carries = length.has_value();
  }
  if (!carries) {
    return op(ops::kInitialState, std::make_shared<const ops::InitialStateParams>(shape), {},
              name + ".zero");
  }
  // The name tells sizes apart: programs of other sizes share what has the same name.
  graph::Graph& graph = context_.graph();
  const auto tensor = [&](std::string_view what) {
    return graph.add_tensor(fmt::format("{}L{}.state.{}{}{}", training ? "" : "forward.",
                                        layer_.index, name, shape.to_string(), what),
                            {shape}, Role::kState);
  };
  StateBinding binding{.layer = layer_.index,
                       .program = training ? ProgramKind::kMiniBatch : ProgramKind::kForward,
                       .tensor = tensor("")};
  // A state that begins anew with the iteration cannot bring in what an abandoned one has left.
  if (training && !length) binding.committed = tensor(".committed");
  context_.lowered().states.push_back(binding);
  kept_.push_back({name, binding.tensor});
  auto params = length ? std::make_shared<const ops::InitialStateParams>(shape, *length)
                       : std::make_shared<const ops::InitialStateParams>(shape);
  return op(ops::kInitialState, std::move(params), {binding.tensor}, name + ".first");
}

void Recurrence::keep_state(const std::string& name, TensorId last) {
  const auto found = std::ranges::find_if(kept_, [&](const Kept& k) { return k.name == name; });
  if (found == kept_.end()) return;
  context_.graph().add_op_to(ops::kCopy, none(), {last}, {found->tensor}, {},
                             context_.training() ? ProgramKind::kMiniBatch : ProgramKind::kForward,
                             layer_.index);
}

}  // namespace lantern::layers
