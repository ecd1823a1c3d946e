#include "plan/program.hpp"

#include <fmt/format.h>

namespace lantern::plan {

namespace {

class Dump {
 public:
  Dump(const graph::Selected& selected, const Program& program)
      : selected_(selected), program_(program) {}

  std::string run() {
    text_ = fmt::format("arena {} persistent {} live peak {} host {} file {}\n",
                        program_.arena_bytes, program_.persistent_bytes, program_.live_peak_bytes,
                        program_.host_bytes, program_.file_bytes);
    for (std::size_t i = 0; i < selected_.tensors.size(); ++i) {
      if (program_.persistent[i] == kNone) continue;
      const Buffer& buffer = program_.buffers[program_.persistent[i]];
      text_ +=
          fmt::format("PLACE {} +{} {}\n", selected_.tensors[i].name, buffer.offset, buffer.bytes);
    }
    for (int kind = 0; kind < graph::kProgramKinds; ++kind)
      add(static_cast<graph::ProgramKind>(kind));
    return std::move(text_);
  }

 private:
  std::string name(std::uint32_t index) const {
    const Buffer& buffer = program_.buffers[index];
    const std::string& tensor = selected_.tensors[buffer.tensor].name;
    if (buffer.images == 0) return tensor;
    return fmt::format("{}[{}:{}]", tensor, buffer.first_image, buffer.first_image + buffer.images);
  }

  void add(graph::ProgramKind kind) {
    const InstructionList& list = program_.of(kind);
    if (list.instructions.empty()) return;
    text_ += fmt::format("PROGRAM {}\n", to_string(kind));
    live_ = program_.persistent_bytes;
    for (const Instruction& instruction : list.instructions) add(list, instruction);
  }

  void add_copy(const char* what, const Copy& copy) {
    const Slot& slot = program_.slots[copy.slot];
    text_ += fmt::format("  {} {} {} +{}\n", what, name(copy.buffer),
                         slot.tier == Tier::kHost ? "host" : "file", slot.offset);
  }

  void add(const InstructionList& list, const Instruction& instruction) {
    switch (instruction.kind) {
      case Instruction::Kind::kAlloc: {
        const Buffer& buffer = program_.buffers[instruction.index];
        live_ += buffer.bytes;
        text_ += fmt::format("  ALLOC {} +{} {} live {}\n", name(instruction.index), buffer.offset,
                             buffer.bytes, live_);
        break;
      }
      case Instruction::Kind::kFree:
        live_ -= program_.buffers[instruction.index].bytes;
        text_ += fmt::format("  FREE {}\n", name(instruction.index));
        break;
      case Instruction::Kind::kRun:
        add_run(list, list.runs[instruction.index]);
        break;
      case Instruction::Kind::kOut:
        add_copy("OUT", list.outs[instruction.index]);
        break;
      case Instruction::Kind::kIn:
        add_copy("IN", list.ins[instruction.index]);
        break;
      case Instruction::Kind::kWaitOut:
        text_ += fmt::format("  WAIT OUT {}\n", instruction.index);
        break;
      case Instruction::Kind::kWaitIn:
        text_ += fmt::format("  WAIT IN {}\n", instruction.index);
        break;
    }
  }

  void add_run(const InstructionList& list, const Run& run) {
    const graph::SelectedOp& op = selected_.ops[run.op];
    text_ += fmt::format("  {} {} [{}]", run.again ? "AGAIN" : "RUN", op.op, op.kernel);
    if (run.images > 0 && run.images < op.images)
      text_ += fmt::format(" images {}:{}", run.first_image, run.first_image + run.images);
    const auto operand = [&](std::size_t i) {
      text_ += " " + name(list.operands[run.first_operand + i].buffer);
    };
    for (std::size_t i = 0; i < op.writes.size(); ++i) operand(op.reads.size() + i);
    text_ += " <-";
    for (std::size_t i = 0; i < op.reads.size(); ++i) operand(i);
    text_ += "\n";
  }

  const graph::Selected& selected_;
  const Program& program_;
  std::string text_;
  Bytes live_ = 0;
};

}  // namespace

std::string Program::dump(const graph::Selected& selected) const {
  return Dump(selected, *this).run();
}

}  // namespace lantern::plan
