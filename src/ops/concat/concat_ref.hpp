#pragma once

#include <cstdint>
#include <span>

// Reference concatenation of channel slices ([route]). Backward ADDS into the sources' gradients.

namespace lantern::ops::ref {

/// Channels [first, first + count) of a source with `channels` channels.
struct ChannelSlice {
  std::int64_t channels = 1, first = 0, count = 1;
};

/// Slice `group` of `groups` equal slices.
inline ChannelSlice channel_group(std::int64_t channels, std::int64_t groups, std::int64_t group) {
  return {channels, channels / groups * group, channels / groups};
}

/// Channels of the output.
inline std::int64_t concat_channels(std::span<const ChannelSlice> slices) {
  std::int64_t total = 0;
  for (const ChannelSlice& slice : slices) total += slice.count;
  return total;
}

/// Per sample the slices of sources[i] [n, slices[i].channels, spatial] in list order -> dst [n,
/// sum of counts, spatial].
template <class T>
void concat_forward(std::int64_t n, std::int64_t spatial, std::span<const ChannelSlice> slices,
                    std::span<const T* const> sources, T* dst) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const T* from = sources[i] + (b * slices[i].channels + slices[i].first) * spatial;
      for (std::int64_t k = 0; k < slices[i].count * spatial; ++k) *dst++ = from[k];
    }
  }
}

/// diff_sources[i] slice += its part of diff_dst. A null entry is skipped.
template <class T>
void concat_backward(std::int64_t n, std::int64_t spatial, std::span<const ChannelSlice> slices,
                     const T* diff_dst, std::span<T* const> diff_sources) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const std::int64_t begin = (b * slices[i].channels + slices[i].first) * spatial;
      for (std::int64_t k = 0; k < slices[i].count * spatial; ++k, ++diff_dst) {
        if (diff_sources[i] != nullptr) diff_sources[i][begin + k] += *diff_dst;
      }
    }
  }
}

}  // namespace lantern::ops::ref
