#include "ops/conv/own_conv.hpp"

#include <algorithm>

namespace lantern::ops {

bool may_be_own(const graph::Op& op, const SelectContext& context) {
  return op.params_as<ConvParams>().may_round &&
         std::ranges::count_if(context.graph.ops(), [&](const graph::Op& other) {
           return std::ranges::count(other.inputs, op.inputs[1]) > 0;
         }) == 1;
}

}  // namespace lantern::ops
