#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

// Reference weighted sum of several inputs ([shortcut]), without the activation. Backward ADDS into
// its outputs.

namespace lantern::ops::ref {

enum class AddWeights : std::uint8_t { kNone, kPerFeature, kPerChannel };
enum class AddNormalization : std::uint8_t { kNone, kRelu, kSoftmax };

/// Channels, height and width of one input; input 0 gives the shape of the output.
struct AddShape {
  std::int64_t c = 1, h = 1, w = 1;
  std::int64_t size() const { return c * h * w; }
};

struct AddParams {
  std::int64_t n = 1;
  std::vector<AddShape> shapes;            ///< of every input, the base first
  AddWeights weights = AddWeights::kNone;  ///< per_feature [inputs], per_channel [inputs, c]
  AddNormalization normalization = AddNormalization::kNone;

  /// Independent sets of weights; set k holds weights k, k + sets(), k + 2 sets(), ...
  std::int64_t sets() const { return weights == AddWeights::kPerChannel ? shapes[0].c : 1; }
};

inline constexpr double kAddEpsilon = 1e-4;     ///< part of the denominator of both normalisations
inline constexpr double kAddReluFloor = 0.001;  ///< smallest weight of the relu normalisation

/// The weights that multiply the inputs, from the `inputs` raw ones of set `set`.
template <class T>
std::vector<T> normalized_weights(const AddParams& p, const T* raw, std::int64_t set) {
  const std::int64_t inputs = static_cast<std::int64_t>(p.shapes.size());
  std::vector<T> w(p.shapes.size(), T(1));
  if (p.weights == AddWeights::kNone) return w;
  T largest = raw[set];
  for (std::int64_t i = 0; i < inputs; ++i) {
    w[static_cast<std::size_t>(i)] = raw[i * p.sets() + set];
    largest = std::max(largest, raw[i * p.sets() + set]);
  }
  if (p.normalization == AddNormalization::kNone) return w;
  T sum = T(kAddEpsilon);
  for (T& v : w) {
    v = p.normalization == AddNormalization::kRelu ? std::max(v, T(kAddReluFloor))
                                                   : std::exp(v - largest);
    sum += v;
  }
  for (T& v : w) v /= sum;
  return w;
}

/// Calls visit(input, channel, input_index, output_index) for every pair of cells that are added.
/// Channels: the first min(c). Other spatial size, st = max(1, w_i div w), sm = max(1, w div w_i):
/// output [k, j * sm, i * sm] receives input [k, j * st, i * st].
template <class Visit>
void for_each_add_pair(const AddParams& p, Visit visit) {
  const AddShape& out = p.shapes[0];
  for (std::size_t input = 0; input < p.shapes.size(); ++input) {
    const AddShape& in = p.shapes[input];
    const std::int64_t step = std::max<std::int64_t>(1, in.w / out.w);
    const std::int64_t sample = std::max<std::int64_t>(1, out.w / in.w);
    const std::int64_t rows = std::min(in.h, out.h);
    const std::int64_t columns = std::min(in.w, out.w);
    for (std::int64_t b = 0; b < p.n; ++b) {
      for (std::int64_t k = 0; k < std::min(in.c, out.c); ++k) {
        for (std::int64_t y = 0; y < rows; ++y) {
          for (std::int64_t x = 0; x < columns; ++x) {
            visit(input, k, ((b * in.c + k) * in.h + y * step) * in.w + x * step,
                  ((b * out.c + k) * out.h + y * sample) * out.w + x * sample);
          }
        }
      }
    }
  }
}

/// dst [n, shapes[0]] = sum of w_i inputs[i]. `weights` is null for AddWeights::kNone.
template <class T>
void add_forward(const AddParams& p, std::span<const T* const> inputs, const T* weights, T* dst) {
  std::vector<std::vector<T>> w;
  for (std::int64_t set = 0; set < p.sets(); ++set) {
    w.push_back(normalized_weights(p, weights, set));
  }
  for (std::int64_t i = 0; i < p.n * p.shapes[0].size(); ++i) dst[i] = T(0);
  for_each_add_pair(p, [&](std::size_t input, std::int64_t k, std::int64_t from, std::int64_t to) {
    dst[to] += w[static_cast<std::size_t>(p.sets() > 1 ? k : 0)][input] * inputs[input][from];
  });
}

/// Exact gradients: diff_inputs[i] += w_i diff_dst (a null entry is skipped), diff_weights through
/// the normalisation (may be null, then `inputs` may be empty). With G_i = sum of diff_dst *
/// input_i and w the normalised weights: relu: [raw_i > 0.001] (G_i - sum_j w_j G_j) / S; softmax:
/// w_i (G_i - sum_j w_j G_j), and the first largest raw weight also gets -(1e-4 / S) sum_j w_j G_j,
/// because the subtracted maximum does not cancel against the 1e-4.
template <class T>
void add_backward(const AddParams& p, std::span<const T* const> inputs, const T* weights,
                  const T* diff_dst, std::span<T* const> diff_inputs, T* diff_weights) {
  const std::size_t sets = static_cast<std::size_t>(p.sets());
  std::vector<std::vector<T>> w;
  for (std::size_t set = 0; set < sets; ++set) {
    w.push_back(normalized_weights(p, weights, static_cast<std::int64_t>(set)));
  }
  std::vector<std::vector<T>> gradient(sets, std::vector<T>(p.shapes.size(), T(0)));
  for_each_add_pair(p, [&](std::size_t input, std::int64_t k, std::int64_t from, std::int64_t to) {
    const std::size_t set = sets > 1 ? static_cast<std::size_t>(k) : 0;
    if (diff_inputs[input] != nullptr) {
      diff_inputs[input][from] += w[set][input] * diff_dst[to];
    }
    if (diff_weights != nullptr) gradient[set][input] += inputs[input][from] * diff_dst[to];
  });
  if (diff_weights == nullptr || p.weights == AddWeights::kNone) return;
  for (std::size_t set = 0; set < sets; ++set) {
    T sum = T(kAddEpsilon);  // the denominator
    T dot = T(0);
    std::size_t largest = 0;
    for (std::size_t i = 0; i < p.shapes.size(); ++i) {
      if (weights[i * sets + set] > weights[largest * sets + set]) largest = i;
      dot += w[set][i] * gradient[set][i];
    }
    for (std::size_t i = 0; i < p.shapes.size(); ++i) {
      const T raw = weights[i * sets + set];
      sum += p.normalization == AddNormalization::kRelu
                 ? std::max(raw, T(kAddReluFloor))
                 : std::exp(raw - weights[largest * sets + set]);
    }
    for (std::size_t i = 0; i < p.shapes.size(); ++i) {
      T* out = diff_weights + i * sets + set;
      const T g = gradient[set][i];
      if (p.normalization == AddNormalization::kNone) {
        *out += g;
      } else if (p.normalization == AddNormalization::kSoftmax) {
        *out += w[set][i] * (g - dot);
      } else if (weights[i * sets + set] > T(kAddReluFloor)) {
        *out += (g - dot) / sum;
      }
    }
    if (p.normalization == AddNormalization::kSoftmax) {
      diff_weights[largest * sets + set] -= T(kAddEpsilon) / sum * dot;
    }
  }
}

}  // namespace lantern::ops::ref
