#include "plan/checker.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "core/error.hpp"

namespace lantern::plan {

namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

/// Contents of the arena: which tensor's values every byte range holds. A write of a tensor takes
/// its whole range.
class Replay {
 public:
  Replay(const graph::Selected& selected, const Program& program)
      : selected_(selected), program_(program) {}

  std::optional<std::string> run() {
    if (program_.placements.size() != selected_.tensors.size() ||
        program_.alias_of.size() != selected_.tensors.size()) {
      return "the plan does not place every tensor";
    }
    if (auto fault = check_persistent()) return fault;
    std::vector<int> runs(selected_.ops.size(), 0);
    for (int kind = 0; kind < graph::kProgramKinds; ++kind) {
      live_.clear();
      ranges_.clear();
      holder_.assign(selected_.tensors.size(), kNobody);
      for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
        if (is_persistent(i)) holder_[i] = i;
      }
      std::int64_t last_run = -1;
      for (const Instruction& instruction : program_.programs[static_cast<std::size_t>(kind)]) {
        if (auto fault = step(instruction, kind, runs, last_run)) return fault;
      }
      if (!live_.empty()) return fmt::format("{} is never freed", name(*live_.begin()));
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i] != 1)
        return fmt::format("op {} ({}) runs {} times", i, selected_.ops[i].op, runs[i]);
    }
    return std::nullopt;
  }

 private:
  bool is_persistent(std::uint32_t tensor) const {
    return graph::is_persistent(selected_.tensors[tensor].role);
  }
  const std::string& name(std::uint32_t tensor) const { return selected_.tensors[tensor].name; }
  Bytes begin(std::uint32_t tensor) const { return program_.placements[tensor].offset; }
  Bytes end(std::uint32_t tensor) const { return begin(tensor) + selected_.tensors[tensor].bytes; }

  std::optional<std::string> check_range(std::uint32_t tensor) const {
    if (begin(tensor) < 0 || end(tensor) > program_.arena_bytes) {
      return fmt::format("{} lies outside the arena", name(tensor));
    }
    if (begin(tensor) % kAlignment != 0) return fmt::format("{} is not aligned", name(tensor));
    return std::nullopt;
  }

  std::optional<std::string> check_persistent() const {
    std::map<Bytes, std::uint32_t> ranges;
    for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
      if (!is_persistent(i) || selected_.tensors[i].bytes == 0) continue;
      if (auto fault = check_range(i)) return fault;
      if (end(i) > program_.persistent_bytes)
        return fmt::format("{} lies among the transients", name(i));
      if (program_.alias_of[i] != i)
        return fmt::format("{} is persistent and shares its bytes", name(i));
      const auto [next, inserted] = ranges.emplace(begin(i), i);
      if (!inserted) return fmt::format("{} overlaps {}", name(i), name(next->second));
    }
    std::uint32_t previous = kNobody;
    for (const auto& [offset, tensor] : ranges) {
      if (previous != kNobody && end(previous) > offset) {
        return fmt::format("{} overlaps {}", name(previous), name(tensor));
      }
      previous = tensor;
    }
    return std::nullopt;
  }

  std::optional<std::string> step(const Instruction& instruction, int kind, std::vector<int>& runs,
                                  std::int64_t& last_run) {
    switch (instruction.kind) {
      case Instruction::Kind::kAlloc:
        return allocate(instruction.index);
      case Instruction::Kind::kFree:
        return release(instruction.index);
      case Instruction::Kind::kRun:
        break;
    }
    if (instruction.index >= selected_.ops.size()) return "an instruction names no op";
    const graph::SelectedOp& op = selected_.ops[instruction.index];
    if (static_cast<int>(op.program) != kind)
      return fmt::format("{} runs in another program", op.op);
    if (static_cast<std::int64_t>(instruction.index) <= last_run)
      return fmt::format("{} runs out of order", op.op);
    last_run = instruction.index;
    ++runs[instruction.index];
    for (const std::uint32_t tensor : op.reads) {
      if (auto fault = require_values(tensor, op)) return fault;
    }
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      if (op.accumulates[i]) {
        if (auto fault = require_values(op.writes[i], op)) return fault;
      }
      if (auto fault = check_write(op, i)) return fault;
    }
    for (const std::uint32_t tensor : op.writes) holder_[owner(tensor)] = tensor;
    return std::nullopt;
  }

  std::uint32_t owner(std::uint32_t tensor) const { return program_.alias_of[tensor]; }

  std::optional<std::string> allocate(std::uint32_t tensor) {
    if (tensor >= selected_.tensors.size()) return "an instruction names no tensor";
    if (is_persistent(tensor)) return fmt::format("persistent {} is allocated", name(tensor));
    if (owner(tensor) != tensor) return fmt::format("{} has no bytes of its own", name(tensor));
    if (selected_.tensors[tensor].bytes > 0) {
      if (auto fault = check_range(tensor)) return fault;
      if (begin(tensor) < program_.persistent_bytes)
        return fmt::format("{} lies among the persistent", name(tensor));
      const auto next = ranges_.lower_bound(begin(tensor));
      if (next != ranges_.end() && next->first < end(tensor)) {
        return fmt::format("{} overlaps live {}", name(tensor), name(next->second));
      }
      if (next != ranges_.begin() && end(std::prev(next)->second) > begin(tensor)) {
        return fmt::format("{} overlaps live {}", name(tensor), name(std::prev(next)->second));
      }
    }
    if (!live_.insert(tensor).second) return fmt::format("{} is allocated twice", name(tensor));
    if (selected_.tensors[tensor].bytes > 0) ranges_.emplace(begin(tensor), tensor);
    holder_[tensor] = kNobody;
    return std::nullopt;
  }

  std::optional<std::string> release(std::uint32_t tensor) {
    if (live_.erase(tensor) == 0) return "something is freed that is not live";
    if (selected_.tensors[tensor].bytes > 0) ranges_.erase(begin(tensor));
    holder_[tensor] = kNobody;
    return std::nullopt;
  }

  bool is_live(std::uint32_t tensor) const {
    return is_persistent(tensor) || live_.contains(owner(tensor));
  }

  std::optional<std::string> require_values(std::uint32_t tensor,
                                            const graph::SelectedOp& op) const {
    if (!is_live(tensor)) return fmt::format("{} reads {}, which is not live", op.op, name(tensor));
    if (holder_[owner(tensor)] != tensor) {
      return fmt::format("{} reads {}, whose bytes do not hold it", op.op, name(tensor));
    }
    return std::nullopt;
  }

  std::optional<std::string> check_write(const graph::SelectedOp& op, std::size_t i) const {
    const std::uint32_t tensor = op.writes[i];
    if (!is_live(tensor))
      return fmt::format("{} writes {}, which is not live", op.op, name(tensor));
    const std::uint32_t own = owner(tensor);
    if (own != tensor && (begin(tensor) != begin(own) || end(tensor) > end(own))) {
      return fmt::format("{} does not fit into the bytes of {}", name(tensor), name(own));
    }
    // Bytes shared with something the op reads are allowed only where the kernel said so.
    for (std::size_t k = 0; k < op.reads.size(); ++k) {
      if (op.reads[k] == tensor || owner(op.reads[k]) != own) continue;
      bool allowed = false;
      for (const graph::AliasHint& hint : op.may_alias) {
        allowed |=
            static_cast<std::size_t>(hint.output) == i && static_cast<std::size_t>(hint.input) == k;
      }
      if (!allowed) return fmt::format("{} writes {} over its input", op.op, name(tensor));
    }
    for (std::size_t k = 0; k < op.writes.size(); ++k) {
      if (k != i && owner(op.writes[k]) == own)
        return fmt::format("{} writes {} twice", op.op, name(own));
    }
    return std::nullopt;
  }

  const graph::Selected& selected_;
  const Program& program_;
  std::set<std::uint32_t> live_;           // owners
  std::map<Bytes, std::uint32_t> ranges_;  // of the live owners that have bytes, by offset
  std::vector<std::uint32_t> holder_;      // by owner: the tensor whose values its bytes hold
};

}  // namespace

std::optional<std::string> find_fault(const graph::Selected& selected, const Program& program) {
  return Replay(selected, program).run();
}

void check(const graph::Selected& selected, const Program& program) {
  if (const std::optional<std::string> fault = find_fault(selected, program)) {
    throw Error(ErrorCode::kInternal, "plan", "the plan does not hold: {}", *fault);
  }
}

}  // namespace lantern::plan
