#include "layers/layer_def.hpp"

namespace lantern::layers {

std::string to_string(const Dims& dims) { return fmt::format("{}x{}x{}", dims.w, dims.h, dims.c); }

std::string ShapeContext::where(const Layer& layer, std::string_view key) const {
  if (sections_ == nullptr || key.empty()) return layer.where;
  const cfg::Section& section = (*sections_)[static_cast<std::size_t>(layer.index)];
  for (const cfg::Option& option : section.options) {
    if (option.key == key) return cfg::where(network_.path, option.line, option.column);
  }
  return layer.where;
}

bool ShapeContext::joins(const Layer& layer, std::string_view key, const Layer& first,
                         const Layer& second) {
  const auto name = [](const Layer& l) { return fmt::format("layer {} ({})", l.index, l.where); };
  return joins(layer, key, name(first), first.out, name(second), second.out);
}

bool ShapeContext::joins(const Layer& layer, std::string_view key, std::string_view first_name,
                         const Dims& first, std::string_view second_name, const Dims& second) {
  if (first.w == second.w && first.h == second.h) return true;
  misfits_w_ = misfits_w_ || first.w != second.w;
  misfits_h_ = misfits_h_ || first.h != second.h;
  if (trial_) return true;
  error(layer, key,
        "layer {} joins {} of {}x{} and {} of {}x{}; they must have equal width and height{}",
        layer.index, first_name, first.w, first.h, second_name, second.w, second.h, size_hint_);
  return false;
}

double ConvShape::bflops(const Dims& out, bool xnor) const {
  const double plain = 2.0 * static_cast<double>(weights()) * static_cast<double>(out.w) *
                       static_cast<double>(out.h) / 1e9;
  return xnor ? plain / 32 : plain;
}

bool ConvShape::check(ShapeContext& context, const Layer& layer, const Dims& in) const {
  if (channels % groups != 0 || filters % groups != 0) {
    context.error(layer, "groups", "groups={} must divide the {} input channels and the {} filters",
                  groups, channels, filters);
    return false;
  }
  // Darknet: the shape rule leaves dilation out, so shape and arithmetic agree for this padding
  // only.
  if (dilation > 1 && 2 * padding != size - 1) {
    context.error(layer, "dilation",
                  "dilation={} needs padding {} with size={} and an odd size, padding is {}",
                  dilation, (size - 1) / 2, size, padding);
    return false;
  }
  if (in.w + 2 * padding < size || in.h + 2 * padding < size) {
    context.error(layer, "size",
                  "a kernel of {0}x{0} is larger than the input {1} with padding {2}", size,
                  to_string(in), padding);
    return false;
  }
  return true;
}

void append_conv_arrays(std::vector<ParameterArray>& arrays, std::string_view prefix,
                        std::int64_t filters, std::int64_t weights, bool batch_normalize) {
  const std::string p(prefix);
  arrays.push_back({p + "biases", filters});
  if (batch_normalize) {
    for (const char* name : {"scales", "rolling_mean", "rolling_variance"})
      arrays.push_back({p + name, filters});
  }
  arrays.push_back({p + "weights", weights});
}

void append_connected_arrays(std::vector<ParameterArray>& arrays, std::string_view prefix,
                             std::int64_t inputs, std::int64_t outputs, bool batch_normalize) {
  const std::string p(prefix);
  arrays.push_back({p + "biases", outputs});
  arrays.push_back({p + "weights", inputs * outputs});
  if (!batch_normalize) return;
  for (const char* name : {"scales", "rolling_mean", "rolling_variance"})
    arrays.push_back({p + name, outputs});
}

Dims blurred(const Dims& map, int antialiasing, int stride_x, int stride_y) {
  const int size = antialiasing == 2 ? 2 : 3;
  const int padding = antialiasing == 2 ? 0 : 1;  // per side
  if (map.w + 2 * padding < size || map.h + 2 * padding < size) return {};
  return {(map.w + 2 * padding - size) / stride_x + 1, (map.h + 2 * padding - size) / stride_y + 1,
          map.c};
}

Dims pooled(const Dims& in, int size, int padding, int stride_x, int stride_y) {
  return {(in.w + padding - size) / stride_x + 1, (in.h + padding - size) / stride_y + 1, in.c};
}

bool check_pool_window(ShapeContext& context, const Layer& layer, int size, int padding) {
  const Dims& in = layer.in;
  if (in.w + padding < size || in.h + padding < size) {
    context.error(layer, "size",
                  "a window of {0}x{0} is larger than the input {1} with padding {2}", size,
                  to_string(in), padding);
    return false;
  }
  if (padding - padding / 2 >= size) {
    context.error(
        layer, "padding",
        "padding={} (both sides together) lets a window of {} lie outside the map; want <= {}",
        padding, size, 2 * size - 2);
    return false;
  }
  return true;
}

void reorganise(ShapeContext& context, Layer& layer, int stride, bool reverse, bool historic) {
  const Dims& in = layer.in;
  const std::int64_t block = std::int64_t{stride} * stride;
  if ((reverse || historic) && in.c % block != 0) {
    context.error(layer, "stride", "stride={} needs channels in multiples of {}, the input is {}",
                  stride, block, to_string(in));
    return;
  }
  if (reverse) {
    layer.out = {in.w * stride, in.h * stride, in.c / block};
    return;
  }
  if (in.w % stride != 0 || in.h % stride != 0) {
    context.error(layer, "stride", "stride={} must divide width and height, the input is {}",
                  stride, to_string(in));
    return;
  }
  layer.out = {in.w / stride, in.h / stride, in.c * block};
}

const Layer* feeding_convolution(const ShapeContext& context, int index) {
  for (int i = index - 1; i >= 0;) {
    const Layer& layer = context.layer(i);
    if (std::holds_alternative<ConvolutionalSpec>(layer.spec)) return &layer;
    if (const auto* route = std::get_if<RouteSpec>(&layer.spec)) {
      if (layer.sources.size() != 1 || route->groups != 1) return nullptr;
      i = layer.sources.front();
    } else if (std::holds_alternative<DropoutSpec>(layer.spec) ||
               std::holds_alternative<EmptySpec>(layer.spec)) {
      --i;
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

bool check_head_channels(ShapeContext& context, const Layer& layer, std::int64_t needed,
                         const std::string& formula) {
  if (layer.in.c == needed) return true;
  if (const Layer* conv = feeding_convolution(context, layer.index)) {
    context.error(
        layer, "",
        "needs {} = {} channels, but the [convolutional] that feeds it ({}) has filters={}; write "
        "filters={} there",
        formula, needed, context.where(*conv, "filters"), layer.in.c, needed);
  } else if (layer.index > 0) {
    const Layer& previous = context.layer(layer.index - 1);
    context.error(
        layer, "",
        "needs {} = {} channels, but the [{}] before it ({}) gives {}; put a [convolutional] with "
        "filters={} size=1 between them",
        formula, needed, previous.section, previous.where, layer.in.c, needed);
  } else {
    context.error(layer, "", "needs {} = {} channels, but the network input has {}", formula,
                  needed, layer.in.c);
  }
  return false;
}

}  // namespace lantern::layers
