#pragma once

#include <string>

#include "core/rng.hpp"

namespace lantern::test {

struct RandomNetworkOptions {
  int layers = 10;      ///< drawn on top of the first convolution and the head
  bool smooth = false;  ///< only activations and pools with a derivative everywhere
  int mini_batch = 2;
  /// Also dropout, DropBlock, channel and pixel attention and reorganised maps, and other sizes.
  bool everything = false;
};

/// cfg text of a network of convolutions, shortcuts (single, several, residual chains), routes
/// (whole, grouped), pools, upsampling and activations at tiny sizes, with one or two [yolo] heads.
std::string random_network(Rng& rng, const RandomNetworkOptions& options = {});

}  // namespace lantern::test
