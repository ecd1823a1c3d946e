#include "plan/planner.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "plan/placement.hpp"

namespace lantern::plan {

namespace {

using graph::ProgramKind;
using graph::Selected;
using graph::SelectedOp;

/// First and last op (global positions) that touch a tensor.
struct Use {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = -1;
  ProgramKind program = ProgramKind::kMiniBatch;
  bool used() const { return last >= 0; }
};

class Planner {
 public:
  Planner(const Selected& selected, const PlanOptions& options)
      : selected_(selected), options_(options), uses_(selected.tensors.size()) {
    result_.placements.resize(selected.tensors.size());
    result_.alias_of.resize(selected.tensors.size());
    for (std::uint32_t i = 0; i < selected.tensors.size(); ++i) result_.alias_of[i] = i;
  }

  Program run() {
    measure_uses();
    if (options_.keep_everything) {
      extend_to_end();
    } else {
      merge_in_place();
    }
    place();
    emit();
    return std::move(result_);
  }

 private:
  bool persistent(std::uint32_t tensor) const {
    return graph::is_persistent(selected_.tensors[tensor].role);
  }

  void measure_uses() {
    for (std::size_t position = 0; position < selected_.ops.size(); ++position) {
      const SelectedOp& op = selected_.ops[position];
      const auto touch = [&](std::uint32_t tensor) {
        Use& use = uses_[tensor];
        LANTERN_ASSERT(persistent(tensor) || !use.used() || use.program == op.program,
                       "a transient belongs to one program");
        use.first = std::min(use.first, static_cast<std::int64_t>(position));
        use.last = static_cast<std::int64_t>(position);
        use.program = op.program;
      };
      std::ranges::for_each(op.reads, touch);
      std::ranges::for_each(op.writes, touch);
    }
  }

  void extend_to_end() {
    std::array<std::int64_t, graph::kProgramKinds> ends{};
    for (std::size_t position = 0; position < selected_.ops.size(); ++position) {
      ends[static_cast<std::size_t>(selected_.ops[position].program)] =
          static_cast<std::int64_t>(position);
    }
    for (Use& use : uses_) {
      if (use.used()) use.last = ends[static_cast<std::size_t>(use.program)];
    }
  }

  std::uint32_t root(std::uint32_t tensor) const {
    while (result_.alias_of[tensor] != tensor) tensor = result_.alias_of[tensor];
    return tensor;
  }

  // An output born at this op takes over the bytes of an input that dies here.
  void merge_in_place() {
    for (std::size_t position = 0; position < selected_.ops.size(); ++position) {
      const SelectedOp& op = selected_.ops[position];
      for (const graph::AliasHint& hint : op.may_alias) {
        const std::uint32_t output = op.writes[static_cast<std::size_t>(hint.output)];
        const std::uint32_t input = op.reads[static_cast<std::size_t>(hint.input)];
        const std::uint32_t owner = root(input);
        const auto here = static_cast<std::int64_t>(position);
        if (persistent(output) || persistent(owner) || root(output) != output || owner == output)
          continue;
        if (uses_[output].first != here || uses_[owner].last != here) continue;
        if (selected_.tensors[output].bytes > selected_.tensors[owner].bytes) continue;
        if (std::ranges::count(op.reads, input) != 1) continue;
        result_.alias_of[output] = owner;
        uses_[owner].last = uses_[output].last;
      }
    }
  }

  void place() {
    Bytes top = 0;
    for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
      if (!persistent(i)) continue;
      result_.placements[i] = {top, selected_.tensors[i].bytes};
      top += round_up(selected_.tensors[i].bytes, kAlignment);
    }
    result_.persistent_bytes = top;
    // Transients of the four programs use the same bytes behind the persistent part.
    Bytes highest = 0;
    Bytes live = 0;
    for (int kind = 0; kind < graph::kProgramKinds; ++kind) {
      std::vector<Interval> intervals;
      std::vector<std::uint32_t> owners;
      for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
        const Use& use = uses_[i];
        if (persistent(i) || !use.used() || root(i) != i || static_cast<int>(use.program) != kind)
          continue;
        intervals.push_back({selected_.tensors[i].bytes, use.first, use.last});
        owners.push_back(i);
      }
      const Packing packing = pack(intervals);
      for (std::size_t k = 0; k < owners.size(); ++k) {
        result_.placements[owners[k]] = {top + packing.offsets[k], intervals[k].bytes};
      }
      highest = std::max(highest, packing.bytes);
      live = std::max(live, live_peak(intervals));
    }
    for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
      if (root(i) != i)
        result_.placements[i] = {result_.placements[root(i)].offset, selected_.tensors[i].bytes};
      result_.alias_of[i] = root(i);
    }
    result_.arena_bytes = round_up(top + highest, 4096);
    result_.live_peak_bytes = top + live;
  }

  void emit() {
    std::vector<std::vector<std::uint32_t>> births(selected_.ops.size());
    std::vector<std::vector<std::uint32_t>> deaths(selected_.ops.size());
    for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
      if (persistent(i) || !uses_[i].used() || result_.alias_of[i] != i) continue;
      births[static_cast<std::size_t>(uses_[i].first)].push_back(i);
      deaths[static_cast<std::size_t>(uses_[i].last)].push_back(i);
    }
    using Kind = Instruction::Kind;
    for (std::uint32_t position = 0; position < selected_.ops.size(); ++position) {
      auto& list = result_.programs[static_cast<std::size_t>(selected_.ops[position].program)];
      for (const std::uint32_t tensor : births[position]) list.push_back({Kind::kAlloc, tensor});
      list.push_back({Kind::kRun, position});
      for (const std::uint32_t tensor : deaths[position]) list.push_back({Kind::kFree, tensor});
    }
  }

  const Selected& selected_;
  PlanOptions options_;
  std::vector<Use> uses_;
  Program result_;
};

}  // namespace

Program make_program(const Selected& selected, const PlanOptions& options) {
  return Planner(selected, options).run();
}

}  // namespace lantern::plan
