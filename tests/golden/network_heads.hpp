#pragma once

#include <vector>

#include "eval/decode.hpp"
#include "eval/nms.hpp"
#include "layers/network.hpp"

namespace lantern::test {

struct NetworkHead {
  int layer = 0;
  eval::YoloHead head;
};

/// Every detection head of a network as eval::decode wants it.
std::vector<NetworkHead> heads_of(const layers::Network& network);

/// Detections of image 0 before suppression. `outputs` are the heads' outputs, one after the other.
eval::DetectionList decode_heads(const layers::Network& network,
                                 const std::vector<NetworkHead>& heads,
                                 const std::vector<std::vector<float>>& outputs,
                                 const eval::DecodeOptions& options);

}  // namespace lantern::test
