#pragma once

#include <string>

namespace lantern::test {

// Small networks of the blocks that published ones are made of, as cfg text: 64 x 64 x 3, one class
// of ten.

/// Cross-stage split around bottlenecks with grouped convolutions, as csresnext50.
std::string grouped_bottlenecks_cfg();
/// Kernels of several sizes on groups of channels, squeeze and excitation, swish, as mixnet_m.
std::string mixed_kernels_cfg();
/// Blocks whose order of levels is permuted, parents brought to their level by strides, pools and
/// enlargement, as spinenet49.
std::string permuted_scales_cfg();
/// Cross-stage splits around residual blocks with mish, as csdarknet53-omega.
std::string split_residuals_cfg();
/// The same normalised over the mini-batches of a batch so far (batch_normalize=2).
std::string cross_iteration_norms_cfg();
/// DropBlock of both kinds of size, on maps that a sum and a concatenation read as well.
std::string dropped_blocks_cfg();
/// Sums with learned weights: by input and by channel, relu and softmax, three inputs.
std::string weighted_sums_cfg();

}  // namespace lantern::test
