#include "ops/batch_norm/batch_norm_kernels.hpp"

#include <algorithm>

#include "ops/batch_norm/batch_norm_simd.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops::batch_norm {

namespace {

// body(image, channel block, segment, first float, end float) with float offsets inside the image's
// map.
template <typename Body>
void for_each_segment(const Extents& e, std::int64_t first, std::int64_t last, int threads,
                      Body body) {
  const std::int64_t segments = e.segments();
  parallel_for((last - first) * e.blocks() * segments, threads, [&](std::int64_t job) {
    const std::int64_t segment = job % segments;
    const std::int64_t plane = job / segments;
    const std::int64_t cb = plane % e.blocks();
    const std::int64_t map = cb * e.spatial * e.block;
    const std::int64_t begin = segment * Extents::kSegment;
    const std::int64_t end = std::min(e.spatial, begin + Extents::kSegment);
    body(first + plane / e.blocks(), cb, segment, map + begin * e.block, map + end * e.block);
  });
}

}  // namespace

Bytes partial_bytes(const Extents& e, std::int64_t images) {
  return images * e.segments() * 2 * e.padded() * static_cast<Bytes>(sizeof(double));
}

void partial_statistics(const Extents& e, Maps<const float> x, std::int64_t first,
                        std::int64_t last, double* partial, int threads) {
  with_block(e.block, [&](auto b) {
    constexpr int B = b();
    using Double = typename Vec<B>::Double;
    for_each_segment(e, first, last, threads,
                     [&](std::int64_t image, std::int64_t cb, std::int64_t segment,
                         std::int64_t begin, std::int64_t end) {
                       const float* map = x.data + image * x.image_stride;
                       // Neighbours sum side by side: one chain of additions would wait for itself.
                       Double sum = {}, sum_odd = {};
                       Double squares = {}, squares_odd = {};
                       std::int64_t i = begin;
                       for (; i + B < end; i += 2 * B) {
                         const Double even = __builtin_convertvector(load<B>(map + i), Double);
                         const Double odd = __builtin_convertvector(load<B>(map + i + B), Double);
                         sum += even;
                         sum_odd += odd;
                         squares += even * even;
                         squares_odd += odd * odd;
                       }
                       if (i < end) {
                         const Double v = __builtin_convertvector(load<B>(map + i), Double);
                         sum += v;
                         squares += v * v;
                       }
                       sum += sum_odd;
                       squares += squares_odd;
                       double* target = partial_of(partial, e, image, segment, cb);
                       std::memcpy(target, &sum, sizeof sum);
                       std::memcpy(target + e.padded(), &squares, sizeof squares);
                     });
  });
}

void finish_statistics(const Extents& e, const double* partial, std::int64_t images, float* mean,
                       float* variance) {
  const double count = static_cast<double>(images * e.spatial);
  combine(e, partial, images, [&](std::int64_t c, double sum, double squares) {
    const double m = sum / count;
    mean[c] = static_cast<float>(m);
    variance[c] = static_cast<float>(std::max(0.0, squares / count - m * m));
  });
}

void apply(const Extents& e, const Channels& channels, Maps<const float> x,
           Maps<const float> residual, Maps<float> y, Activation activation, std::int64_t first,
           std::int64_t last, int threads) {
  with_block_and_activation(e, activation, [&](auto b, auto act) {
    constexpr int B = b();
    for_each_segment(e, first, last, threads,
                     [&](std::int64_t image, std::int64_t cb, std::int64_t, std::int64_t begin,
                         std::int64_t end) {
                       const ChannelBlock<B> block(channels, e, cb);
                       const float* in = x.data + image * x.image_stride;
                       const float* side = residual.data == nullptr
                                               ? nullptr
                                               : residual.data + image * residual.image_stride;
                       float* out = y.data + image * y.image_stride;
                       const bool whole = lanes_used(e, cb) == B;
                       for (std::int64_t i = begin; i < end; i += B) {
                         auto value = activate<B>(act(), block.z(load<B>(in + i)));
                         if (side != nullptr) value += load<B>(side + i);
                         if (!whole) value = select<B>(block.used, value, splat<B>(0.0F));
                         store<B>(out + i, value);
                       }
                     });
  });
}

void partial_reduce(const Extents& e, const Channels& channels, Maps<const float> dy,
                    Maps<const float> x, Activation activation, std::int64_t first,
                    std::int64_t last, double* partial, int threads) {
  with_block_and_activation(e, activation, [&](auto b, auto act) {
    constexpr int B = b();
    using Double = typename Vec<B>::Double;
    for_each_segment(e, first, last, threads,
                     [&](std::int64_t image, std::int64_t cb, std::int64_t segment,
                         std::int64_t begin, std::int64_t end) {
                       const ChannelBlock<B> block(channels, e, cb);
                       const float* gradient = dy.data + image * dy.image_stride;
                       const float* in = x.data + image * x.image_stride;
                       Double sum = {}, sum_odd = {};
                       Double products = {}, products_odd = {};
                       const auto add = [&](std::int64_t i, Double& dz_sum, Double& product_sum) {
                         const auto value = load<B>(in + i);
                         const Double dz = __builtin_convertvector(
                             behind_activation<B>(act, block, load<B>(gradient + i), value),
                             Double);
                         dz_sum += dz;
                         product_sum += dz * __builtin_convertvector(block.xhat(value), Double);
                       };
                       std::int64_t i = begin;
                       for (; i + B < end; i += 2 * B) {
                         add(i, sum, products);
                         add(i + B, sum_odd, products_odd);
                       }
                       if (i < end) add(i, sum, products);
                       sum += sum_odd;
                       products += products_odd;
                       double* target = partial_of(partial, e, image, segment, cb);
                       std::memcpy(target, &sum, sizeof sum);
                       std::memcpy(target + e.padded(), &products, sizeof products);
                     });
  });
}

void finish_reduce(const Extents& e, const double* partial, std::int64_t images, float* sum_dz,
                   float* sum_dz_xhat) {
  combine(e, partial, images, [&](std::int64_t c, double sum, double products) {
    sum_dz[c] = static_cast<float>(sum);
    sum_dz_xhat[c] = static_cast<float>(products);
  });
}

void backward_apply(const Extents& e, const Channels& channels, const float* sum_dz,
                    const float* sum_dz_xhat, std::int64_t count, Maps<const float> dy,
                    Maps<const float> x, Maps<float> dx, Activation activation, bool accumulate,
                    std::int64_t first, std::int64_t last, int threads) {
  const auto values = static_cast<float>(count);
  with_block_and_activation(e, activation, [&](auto b, auto act) {
    constexpr int B = b();
    for_each_segment(e, first, last, threads,
                     [&](std::int64_t image, std::int64_t cb, std::int64_t, std::int64_t begin,
                         std::int64_t end) {
                       const ChannelBlock<B> block(channels, e, cb);
                       auto mean_dz = splat<B>(0.0F);
                       auto mean_dz_xhat = splat<B>(0.0F);
                       for (int lane = 0; lane < lanes_used(e, cb) && sum_dz != nullptr; ++lane) {
                         mean_dz[lane] = sum_dz[cb * B + lane] / values;
                         mean_dz_xhat[lane] = sum_dz_xhat[cb * B + lane] / values;
                       }
                       const auto factor = block.gamma * block.invstd;
                       const float* gradient = dy.data + image * dy.image_stride;
                       const float* in = x.data + image * x.image_stride;
                       float* out = dx.data + image * dx.image_stride;
                       const bool whole = lanes_used(e, cb) == B;
                       for (std::int64_t i = begin; i < end; i += B) {
                         const auto value = load<B>(in + i);
                         const auto dz =
                             behind_activation<B>(act, block, load<B>(gradient + i), value);
                         auto result = factor * (dz - mean_dz - block.xhat(value) * mean_dz_xhat);
                         if (!whole) result = select<B>(block.used, result, splat<B>(0.0F));
                         if (accumulate) result += load<B>(out + i);
                         store<B>(out + i, result);
                       }
                     });
  });
}

}  // namespace lantern::ops::batch_norm
