#include "graph/selected.hpp"

#include <fmt/format.h>

namespace lantern::graph {

std::string Selected::dump() const {
  std::string text;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const SelectedOp& op = ops[i];
    text += fmt::format("{:4} {} layer {} {} [{}]", i, to_string(op.program), op.layer, op.op,
                        op.kernel);
    for (std::size_t k = 0; k < op.writes.size(); ++k) {
      const SelectedTensor& tensor = tensors[op.writes[k]];
      text += fmt::format("{}{}{}:{}", k ? ", " : " ", op.accumulates[k] ? "+=" : "", tensor.name,
                          tensor.layout);
    }
    text += " <-";
    for (const std::uint32_t read : op.reads)
      text += fmt::format(" {}:{}", tensors[read].name, tensors[read].layout);
    if (op.image_group > 0) text += fmt::format(" group={}", op.image_group);
    text += "\n";
  }
  return text;
}

}  // namespace lantern::graph
