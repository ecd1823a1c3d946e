#include "ops/concat/concat.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/batch_norm/batch_norm_gradient.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

// N, H, W of a part.
Shape part_shape(const ConcatPart& part, const Shape& input) {
  if (const auto* upsample = std::get_if<UpsampleParams>(&part.source))
    return resized(*upsample, input);
  if (const auto* slice = std::get_if<ChannelSlice>(&part.source)) {
    LANTERN_ASSERT(slice->first + slice->count <= input.c(), "a slice lies inside its source");
  } else {
    LANTERN_ASSERT(part.channels == input.c(), "a part is made of the whole map");
  }
  return input;
}

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& parts = static_cast<const ConcatParams&>(params).parts;
  Shape out;
  std::int64_t channels = 0;
  std::size_t at = 0;
  for (const ConcatPart& part : parts) {
    const Shape shape = part_shape(part, inputs[at].shape);
    if (at == 0) out = shape;
    LANTERN_ASSERT(shape.n() == out.n() && shape.h() == out.h() && shape.w() == out.w(),
                   "concatenated maps have equal sizes");
    LANTERN_ASSERT(
        std::holds_alternative<ChannelSlice>(part.source) || channels % kSliceAlignment == 0,
        "what is made in place begins with a channel block");
    channels += part.channels;
    at += part.inputs();
  }
  out.set(1, channels);
  return {{out, DType::kF32}};
}

// The gradients of one part, which stands at channel `offset` of the concatenation.
class PartGradient {
 public:
  PartGradient(GradientBuilder& builder, std::span<const TensorId> inputs, TensorId dy,
               std::int64_t offset)
      : builder_(builder), inputs_(inputs), dy_(dy), offset_(offset) {}

  void operator()(const ChannelSlice& slice) const {
    if (!builder_.wants(inputs_[0])) return;
    builder_.emit(kConcatBackward, std::make_shared<const ConcatGradientParams>(slice, offset_),
                  {dy_}, {builder_.target(inputs_[0])});
  }
  void operator()(const BatchNormParams& norm) const {
    emit_batch_norm_gradient(builder_,
                             {.inputs = inputs_,
                              .params = std::make_shared<const BatchNormParams>(
                                  norm.activation, false, norm.fixed, offset_),
                              .incoming = {dy_}},
                             kBatchNormBackwardReduce, kBatchNormBackwardApply);
  }
  void operator()(const UpsampleParams& upsample) const {
    if (!builder_.wants(inputs_[0])) return;
    builder_.emit(kUpsampleBackward,
                  std::make_shared<const UpsampleParams>(upsample.stride, upsample.reduce,
                                                         upsample.scale, offset_),
                  {dy_}, {builder_.target(inputs_[0])});
  }

 private:
  GradientBuilder& builder_;
  std::span<const TensorId> inputs_;
  TensorId dy_;
  std::int64_t offset_;
};

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  std::int64_t offset = 0;
  std::span<const TensorId> inputs = op.inputs;
  for (const ConcatPart& part : op.params_as<ConcatParams>().parts) {
    std::visit(PartGradient(builder, inputs, *dy, offset), part.source);
    inputs = inputs.subspan(part.inputs());
    offset += part.channels;
  }
}

std::string describe_part(const ConcatPart& part) {
  if (const auto* slice = std::get_if<ChannelSlice>(&part.source))
    return fmt::format("{}+{}", slice->first, slice->count);
  if (const auto* norm = std::get_if<BatchNormParams>(&part.source))
    return fmt::format("batch_norm({})+{}", norm->describe(), part.channels);
  return fmt::format("upsample({})+{}", std::get<UpsampleParams>(part.source).describe(),
                     part.channels);
}

}  // namespace

std::string ConcatParams::describe() const {
  std::string text = "slices=";
  for (const ConcatPart& part : parts) text += describe_part(part) + ",";
  text.pop_back();
  return text;
}
std::string ConcatGradientParams::describe() const {
  return fmt::format("slice={}+{} from={}", slice.first, slice.count, dst_first);
}

const graph::OpDef kConcatForward{.name = "concat", .infer = infer, .gradient = gradient};
const graph::OpDef kConcatBackward{.name = "concat_backward"};

}  // namespace lantern::ops
