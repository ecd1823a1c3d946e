#include "plan/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "plan/checker_memory.hpp"

namespace lantern::plan {

namespace {

using graph::Selected;
using graph::SelectedOp;
using graph::SelectedTensor;
using Version = Memory::Version;

/// Where an operand of a run lies.
struct Place {
  std::uint32_t buffer = 0;
  std::uint32_t root = 0;
  std::int64_t first = 0, images = 1;  ///< of the buffer's images
  Bytes begin = 0, end = 0;            ///< from the start of the buffer
  bool written = false;
  bool sum = false;     ///< made by all runs of the op together
  Version version = 0;  ///< that it has before the op: the number of earlier writers
};

class Replay {
 public:
  Replay(const Selected& selected, const Program& program)
      : selected_(selected), program_(program) {}

  Fault run() {
    count_versions();
    if (Fault fault = check_layout(selected_, program_, layout_)) return fault;
    Memory memory(selected_, program_, layout_);
    memory_ = &memory;
    for (kind_ = 0; kind_ < graph::kProgramKinds; ++kind_) {
      if (Fault fault = run_program()) {
        return fmt::format("program {}: {}", to_string(static_cast<graph::ProgramKind>(kind_)),
                           *fault);
      }
    }
    if (memory.live_peak() != program_.live_peak_bytes) {
      return fmt::format("the plan says its live peak is {} bytes, and it is {}",
                         program_.live_peak_bytes, memory.live_peak());
    }
    return std::nullopt;
  }

 private:
  // The version of every operand before its op, and of every tensor after all ops of a program.
  void count_versions() {
    for (auto& counts : writers_) counts.assign(selected_.tensors.size(), 0);
    for (const SelectedOp& op : selected_.ops) {
      auto& counts = writers_[static_cast<std::size_t>(op.program)];
      first_version_.push_back(versions_.size());
      for (const std::uint32_t tensor : op.reads) versions_.push_back(counts[tensor]);
      for (const std::uint32_t tensor : op.writes) versions_.push_back(counts[tensor]);
      for (const std::uint32_t tensor : op.writes) ++counts[tensor];
    }
    covered_.resize(selected_.ops.size());
    ranges_end_.assign(selected_.ops.size(), 0);
    for (std::size_t i = 0; i < selected_.ops.size(); ++i) {
      covered_[i].assign(
          static_cast<std::size_t>(std::max<std::int64_t>(selected_.ops[i].images, 1)), false);
    }
  }

  Fault run_program() {
    list_ = &program_.programs[static_cast<std::size_t>(kind_)];
    memory_->start(*list_);
    partial_.assign(program_.buffers.size(), kNone);
    for (const Instruction& instruction : list_->instructions) {
      if (Fault fault = step(instruction)) return fault;
    }
    if (Fault fault = memory_->finish()) return fault;
    for (std::uint32_t i = 0; i < selected_.ops.size(); ++i) {
      if (static_cast<int>(selected_.ops[i].program) != kind_) continue;
      const auto missing = std::ranges::find(covered_[i], false);
      if (missing != covered_[i].end()) {
        return fmt::format("{} never runs on image {}", name_of_op(i),
                           missing - covered_[i].begin());
      }
    }
    for (std::uint32_t tensor = 0; tensor < selected_.tensors.size(); ++tensor) {
      const std::uint32_t buffer = program_.persistent[tensor];
      if (buffer == kNone) continue;
      const Version last = writers_[static_cast<std::size_t>(kind_)][tensor];
      for (const Version version : memory_->versions(buffer)) {
        if (version != last)
          return fmt::format("{} ends in version {} instead of {}", selected_.tensors[tensor].name,
                             version, last);
      }
    }
    return std::nullopt;
  }

  Fault step(const Instruction& instruction) {
    switch (instruction.kind) {
      case Instruction::Kind::kAlloc:
        return memory_->allocate(instruction.index);
      case Instruction::Kind::kFree:
        return memory_->release(instruction.index);
      case Instruction::Kind::kOut:
        return memory_->start_out(instruction.index);
      case Instruction::Kind::kIn:
        return memory_->start_in(instruction.index);
      case Instruction::Kind::kWaitOut:
        return memory_->wait_out(instruction.index);
      case Instruction::Kind::kWaitIn:
        return memory_->wait_in(instruction.index);
      case Instruction::Kind::kRun:
        break;
    }
    if (instruction.index >= list_->runs.size()) return "an instruction names no run";
    const Run& run = list_->runs[instruction.index];
    if (run.op >= selected_.ops.size()) return fmt::format("run {} names no op", instruction.index);
    if (Fault fault = execute(run))
      return fmt::format("run {}: {} {}", instruction.index, name_of_run(run), *fault);
    return std::nullopt;
  }

  std::string name_of_op(std::uint32_t index) const {
    const SelectedOp& op = selected_.ops[index];
    return fmt::format("op {} {}{}{}", index, op.op, op.label.empty() ? "" : " of ", op.label);
  }
  std::string name_of_run(const Run& run) const {
    std::string text = name_of_op(run.op);
    if (run.images > 0)
      text += fmt::format(" images {}..{}", run.first_image, run.first_image + run.images - 1);
    return run.again ? text + " again" : text;
  }
  std::string name(const Place& place) const { return describe(selected_, program_, place.buffer); }

  Fault execute(const Run& run) {
    if (Fault fault = check_range(run)) return fault;
    if (Fault fault = check_coverage(run)) return fault;
    if (Fault fault = find_places(run)) return fault;
    for (const Place& place : places_) {
      if (!place.written) {
        if (Fault fault = check_read(place)) return fault;
      }
    }
    const SelectedOp& op = selected_.ops[run.op];
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      const Place& place = places_[op.reads.size() + i];
      if (Fault fault = check_write(run, place, op.accumulates[i])) return fault;
      if (Fault fault = check_sharing(op, i)) return fault;
    }
    for (std::size_t i = 0; i < op.writes.size(); ++i) write(run, places_[op.reads.size() + i]);
    return std::nullopt;
  }

  Fault check_range(const Run& run) const {
    const SelectedOp& op = selected_.ops[run.op];
    if (static_cast<int>(op.program) != kind_) return "belongs to another program";
    if (op.images == 0) {
      if (run.images != 0 || run.first_image != 0) return "runs on a range and only runs whole";
      return std::nullopt;
    }
    if (run.images <= 0 || run.first_image < 0 || run.images > op.images ||
        run.first_image > op.images - run.images)
      return fmt::format("runs outside its {} images", op.images);
    const std::int64_t group = std::max<std::int64_t>(op.image_group, 1);
    const std::int64_t end = run.first_image + run.images;
    if (run.first_image % group != 0 || (end % group != 0 && end != op.images))
      return fmt::format("cuts a group of {} images", group);
    return std::nullopt;
  }

  // First runs cover every image once; the others repeat what has run and may be repeated.
  Fault check_coverage(const Run& run) {
    const SelectedOp& op = selected_.ops[run.op];
    std::vector<bool>& covered = covered_[run.op];
    const std::int64_t end = run.first_image + std::max<std::int64_t>(run.images, 1);
    for (std::int64_t image = run.first_image; image < end; ++image) {
      if (covered[static_cast<std::size_t>(image)] == run.again) continue;
      return run.again ? fmt::format("has not run on image {} before", image)
                       : fmt::format("has run on image {} before", image);
    }
    if (run.again) {
      if (op.carries) return "carries sums and may not run again";
      for (std::size_t i = 0; i < op.writes.size(); ++i) {
        const SelectedTensor& tensor = selected_.tensors[op.writes[i]];
        if (op.accumulates[i]) return fmt::format("adds to {} and may not run again", tensor.name);
        if (graph::is_persistent(tensor.role))
          return fmt::format("writes persistent {} and may not run again", tensor.name);
        if (is_sum(op, op.writes[i]))
          return fmt::format("makes the sum {} and may not run again", tensor.name);
      }
      return std::nullopt;
    }
    bool in_order = op.carries;
    for (const std::uint32_t tensor : op.writes) in_order |= is_sum(op, tensor);
    if (in_order && op.images > 0 && run.first_image != ranges_end_[run.op])
      return fmt::format("makes a sum and image {} is due", ranges_end_[run.op]);
    ranges_end_[run.op] = end;
    for (std::int64_t image = run.first_image; image < end; ++image)
      covered[static_cast<std::size_t>(image)] = true;
    return std::nullopt;
  }

  // Scratch is made anew by every run, unless it carries.
  bool is_sum(const SelectedOp& op, std::uint32_t tensor) const {
    const SelectedTensor& info = selected_.tensors[tensor];
    if (op.images == 0) return false;
    if (info.role == graph::Role::kScratch) return op.carries;
    return info.images == 0;
  }

  Fault find_places(const Run& run) {
    const SelectedOp& op = selected_.ops[run.op];
    const std::size_t count = op.reads.size() + op.writes.size();
    if (run.first_operand > list_->operands.size() ||
        count > list_->operands.size() - run.first_operand)
      return "has too few operands";
    places_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const bool written = i >= op.reads.size();
      const std::uint32_t tensor = written ? op.writes[i - op.reads.size()] : op.reads[i];
      const Operand& operand = list_->operands[run.first_operand + i];
      if (operand.buffer >= program_.buffers.size() ||
          program_.buffers[operand.buffer].tensor != tensor)
        return fmt::format("is not given {} as operand {}", selected_.tensors[tensor].name, i);
      Place place{.buffer = operand.buffer,
                  .root = layout_.buffers[operand.buffer].root,
                  .written = written,
                  .sum = written && is_sum(op, tensor),
                  .version = versions_[first_version_[run.op] + i]};
      if (Fault fault = find_images(run, operand, place)) return fault;
      places_.push_back(place);
    }
    return std::nullopt;
  }

  Fault find_images(const Run& run, const Operand& operand, Place& place) const {
    const SelectedOp& op = selected_.ops[run.op];
    const BufferFacts& buffer = layout_.buffers[operand.buffer];
    const SelectedTensor& tensor = selected_.tensors[program_.buffers[operand.buffer].tensor];
    std::int64_t first = 0;
    place.images = std::max<std::int64_t>(tensor.images, 1);
    if (op.images > 0 && tensor.images == op.images) {
      first = run.first_image;
      place.images = run.images;
    } else if (tensor.images > 0 && op.images > 0 && run.images != op.images) {
      return fmt::format("runs on a range, and {} has {} images", tensor.name, tensor.images);
    }
    place.first = first - buffer.first_image;
    if (place.first < 0 || place.first + place.images > buffer.images)
      return fmt::format("needs images outside {}", name(place));
    place.begin = place.first * buffer.image_bytes;
    place.end = place.begin + place.images * buffer.image_bytes;
    if (operand.skip != place.begin) {
      return fmt::format("skips {} bytes of {} instead of {}", operand.skip, name(place),
                         place.begin);
    }
    return std::nullopt;
  }

  Fault check_version(const Place& place, const char* does) const {
    for (const Version version : memory_->versions(place.buffer)
                                     .subspan(static_cast<std::size_t>(place.first),
                                              static_cast<std::size_t>(place.images))) {
      if (version == place.version && (version > 0 || is_persistent(place))) continue;
      if (version == Memory::kUnset || version == 0)
        return fmt::format("{} {}, which does not hold it", does, name(place));
      if (version == Memory::kPartial)
        return fmt::format("{} {}, which is not complete", does, name(place));
      return fmt::format("{} {}, which holds version {} instead of {}", does, name(place), version,
                         place.version);
    }
    return std::nullopt;
  }
  bool is_persistent(const Place& place) const { return layout_.buffers[place.buffer].persistent; }

  Fault check_read(const Place& place) const {
    if (Fault fault = memory_->check_access(place.buffer, false))
      return fmt::format("reads {}", *fault);
    return check_version(place, "reads");
  }

  Fault check_write(const Run& run, const Place& place, bool accumulates) const {
    if (Fault fault = memory_->check_access(place.buffer, true))
      return fmt::format("writes {}", *fault);
    if (place.sum && run.first_image > 0) {
      // Ranges come in ascending order, so the sum so far is of all images before this one.
      if (memory_->versions(place.buffer)[0] != Memory::kPartial ||
          partial_[place.buffer] != run.op)
        return fmt::format("goes on with {}, which does not hold the sum so far", name(place));
      return std::nullopt;
    }
    if (accumulates) return check_version(place, "adds to");
    return std::nullopt;
  }

  // Bytes shared with what the op reads or writes besides are allowed only where the kernel said
  // so.
  Fault check_sharing(const SelectedOp& op, std::size_t write) const {
    const Place& out = places_[op.reads.size() + write];
    bool took_over = false;
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const Place& other = places_[k];
      if (other.root != out.root || k == op.reads.size() + write) continue;
      if (other.begin >= out.end || out.begin >= other.end) continue;
      if (other.written) return fmt::format("writes {} and {} at once", name(out), name(other));
      if (other.buffer == out.buffer && other.begin == out.begin) continue;
      const bool allowed = std::ranges::any_of(op.may_alias, [&](const graph::AliasHint& hint) {
        return static_cast<std::size_t>(hint.output) == write &&
               static_cast<std::size_t>(hint.input) == k;
      });
      if (!allowed || other.begin != out.begin)
        return fmt::format("writes {} over its input {}", name(out), name(other));
      took_over = true;
    }
    if (out.buffer == out.root || took_over || out.begin == out.end) return std::nullopt;
    // Some run took the bytes over before, which ended the old value; this one writes more of it.
    const std::span<const Version> held = memory_->versions(out.buffer);
    if (std::ranges::any_of(held, [](Version version) { return version != Memory::kUnset; }))
      return std::nullopt;
    return fmt::format("makes {} in the bytes of {}, which it does not read", name(out),
                       describe(selected_, program_, out.root));
  }

  void write(const Run& run, const Place& place) {
    memory_->overwrite(place.buffer, place.first, place.images);
    const std::span<Version> held =
        memory_->versions(place.buffer)
            .subspan(static_cast<std::size_t>(place.first), static_cast<std::size_t>(place.images));
    const bool partial = place.sum && run.first_image + run.images != selected_.ops[run.op].images;
    if (partial) partial_[place.buffer] = run.op;
    std::ranges::fill(held, partial ? Memory::kPartial : place.version + 1);
  }

  const Selected& selected_;
  const Program& program_;
  Layout layout_;
  Memory* memory_ = nullptr;
  int kind_ = 0;
  const InstructionList* list_ = nullptr;
  std::array<std::vector<Version>, graph::kProgramKinds> writers_;  // by tensor
  std::vector<std::size_t> first_version_;                          // by op, in versions_
  std::vector<Version> versions_;                                   // by operand of an op
  std::vector<std::vector<bool>> covered_;                          // by op and image
  std::vector<std::int64_t> ranges_end_;                            // by op: end of the last range
  std::vector<std::uint32_t> partial_;  // by buffer: the op whose sum it holds in part
  std::vector<Place> places_;           // of the run at hand: reads, then writes
};

}  // namespace

std::optional<std::string> find_fault(const Selected& selected, const Program& program) {
  return Replay(selected, program).run();
}

void check(const Selected& selected, const Program& program) {
  if (const Fault fault = find_fault(selected, program)) {
    throw Error(ErrorCode::kInternal, "plan", "the plan does not hold: {}", *fault);
  }
}

}  // namespace lantern::plan
