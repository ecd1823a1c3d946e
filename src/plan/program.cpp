#include "plan/program.hpp"

#include <fmt/format.h>

namespace lantern::plan {

std::string Program::dump(const graph::Selected& selected) const {
  std::string text = fmt::format("arena {} persistent {} live peak {}\n", arena_bytes,
                                 persistent_bytes, live_peak_bytes);
  for (std::size_t i = 0; i < selected.tensors.size(); ++i) {
    if (!graph::is_persistent(selected.tensors[i].role)) continue;
    text += fmt::format("PLACE {} +{} {}\n", selected.tensors[i].name, placements[i].offset,
                        placements[i].bytes);
  }
  for (int kind = 0; kind < graph::kProgramKinds; ++kind) {
    const auto& list = programs[static_cast<std::size_t>(kind)];
    if (list.empty()) continue;
    text += fmt::format("PROGRAM {}\n", to_string(static_cast<graph::ProgramKind>(kind)));
    Bytes live = persistent_bytes;
    for (const Instruction& instruction : list) {
      switch (instruction.kind) {
        case Instruction::Kind::kAlloc:
          live += placements[instruction.index].bytes;
          text += fmt::format(
              "  ALLOC {} +{} {} live {}\n", selected.tensors[instruction.index].name,
              placements[instruction.index].offset, placements[instruction.index].bytes, live);
          break;
        case Instruction::Kind::kFree:
          live -= placements[instruction.index].bytes;
          text += fmt::format("  FREE {}\n", selected.tensors[instruction.index].name);
          break;
        case Instruction::Kind::kRun: {
          const graph::SelectedOp& op = selected.ops[instruction.index];
          text += fmt::format("  RUN {} [{}]", op.op, op.kernel);
          for (const std::uint32_t w : op.writes) text += " " + selected.tensors[w].name;
          text += " <-";
          for (const std::uint32_t r : op.reads) text += " " + selected.tensors[r].name;
          text += "\n";
          break;
        }
      }
    }
  }
  return text;
}

}  // namespace lantern::plan
