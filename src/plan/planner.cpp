#include "plan/planner.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "plan/bound.hpp"
#include "plan/search.hpp"

namespace lantern::plan {

namespace {

using graph::ProgramKind;
using graph::Selected;

constexpr Bytes kPage = 4096;

bool has_fixed_place(const graph::SelectedTensor& tensor) {
  return tensor.role != graph::Role::kInput && tensor.role != graph::Role::kOutput;
}

class Planner {
 public:
  Planner(const Selected& selected, const PlanOptions& options)
      : selected_(selected), options_(options) {
    limits_ = {.memory = options.memory,
               .host_memory = options.host_memory,
               .disk_memory = options.disk_memory,
               .contention = options.contention,
               .keep_everything = options.keep_everything};
    if (options.host_memory > 0) limits_.host = options.host;
    if (options.disk_memory > 0) limits_.disk = options.disk;
    for (std::uint32_t i = 0; i < selected.ops.size(); ++i)
      ops_[static_cast<std::size_t>(selected.ops[i].program)].push_back(i);
    place_persistent();
    if (options.memory != PlanOptions::kUnlimited) {
      // The arena ends on a page.
      limits_.memory = options.memory / kPage * kPage - result_.persistent_bytes;
    }
  }

  Program run() {
    for (std::size_t kind = 0; kind < ops_.size(); ++kind) {
      if (!ops_[kind].empty()) planned_[kind] = plan(ops_[kind]);
    }
    Bytes transients = 0;
    Bytes live = 0;
    for (std::size_t kind = 0; kind < ops_.size(); ++kind) {
      const std::optional<Planned>& planned = planned_[kind];
      if (!planned) continue;
      const Planned& p = *planned;
      emit(*p.problem, p.schedule, p.places, static_cast<ProgramKind>(kind),
           result_.persistent_bytes, result_);
      transients = std::max(transients, p.places.arena_bytes);
      live = std::max(live, live_bytes(static_cast<ProgramKind>(kind)));
      result_.host_bytes = std::max(result_.host_bytes, p.places.host_bytes);
      result_.file_bytes = std::max(result_.file_bytes, p.places.file_bytes);
    }
    result_.arena_bytes = round_up(result_.persistent_bytes + transients, kPage);
    result_.live_peak_bytes = result_.persistent_bytes + live;
    predict();
    return std::move(result_);
  }

  Bytes smallest() {
    Bytes transients = 0;
    for (const std::vector<std::uint32_t>& ops : ops_) {
      if (ops.empty()) continue;
      transients = std::max(transients,
                            search_smallest(selected_, ops, limits_, options_).places.arena_bytes);
    }
    return round_up(result_.persistent_bytes + transients, kPage);
  }

 private:
  void place_persistent() {
    result_.persistent.assign(selected_.tensors.size(), kNone);
    Bytes top = options_.places ? options_.places->end : 0;
    // What does not grow with the images first, so that it lies alike in programs of other sizes.
    for (const bool is_fixed : {true, false}) {
      for (std::uint32_t i = 0; i < selected_.tensors.size(); ++i) {
        const graph::SelectedTensor& tensor = selected_.tensors[i];
        if (!graph::is_persistent(tensor.role) || has_fixed_place(tensor) != is_fixed) continue;
        const auto buffer = static_cast<std::uint32_t>(result_.buffers.size());
        result_.persistent[i] = buffer;
        result_.buffers.push_back(
            {.tensor = i, .offset = top, .bytes = tensor.bytes, .alias_of = buffer});
        const auto given = options_.places ? options_.places->offsets.find(tensor.name)
                                           : std::map<std::string, Bytes>::const_iterator{};
        if (options_.places && given != options_.places->offsets.end()) {
          result_.buffers.back().offset = given->second;
        } else {
          top += round_up(tensor.bytes, kAlignment);
        }
      }
    }
    // File copies want transients on pages.
    result_.persistent_bytes = round_up(top, kFileAlignment);
  }

  Planned plan(const std::vector<std::uint32_t>& ops) {
    if (options_.keep_everything || options_.memory == PlanOptions::kUnlimited)
      return plan_unlimited(selected_, ops, limits_, options_);
    Planned best = search_fastest(selected_, ops, limits_, options_);
    if (best.places.arena_bytes <= limits_.memory) return best;
    throw Error(ErrorCode::kResource, "",
                "{} of memory are not enough, the smallest budget that works is {}",
                format_bytes(options_.memory),
                format_bytes(round_up(result_.persistent_bytes + best.places.arena_bytes, kPage)));
  }

  // Largest sum of the allocated buffers at any moment of a program.
  Bytes live_bytes(ProgramKind kind) const {
    Bytes live = 0;
    Bytes peak = 0;
    for (const Instruction& instruction : result_.of(kind).instructions) {
      if (instruction.kind == Instruction::Kind::kAlloc) {
        live += result_.buffers[instruction.index].bytes;
        peak = std::max(peak, live);
      } else if (instruction.kind == Instruction::Kind::kFree) {
        live -= result_.buffers[instruction.index].bytes;
      }
    }
    return peak;
  }

  void predict() {
    const auto& training = planned_[static_cast<std::size_t>(ProgramKind::kMiniBatch)];
    const auto& inference = planned_[static_cast<std::size_t>(ProgramKind::kForward)];
    if (!training && !inference) return;
    const Planned& p = training ? *training : *inference;
    const Schedule& s = p.schedule;
    const auto& ops =
        ops_[static_cast<std::size_t>(training ? ProgramKind::kMiniBatch : ProgramKind::kForward)];
    result_.prediction = {.seconds = s.seconds,
                          .recompute_seconds = s.recompute_seconds,
                          .bytes_out = s.bytes_out,
                          .bytes_in = s.bytes_in,
                          .evaluations = p.evaluations};
    for (const Step& step : p.problem->steps) {
      if (step.images == 0) continue;
      const auto parts = ceil_div(selected_.ops[step.op].images, step.images);
      result_.prediction.chunks = std::max(result_.prediction.chunks, static_cast<int>(parts));
    }
    const Planned all = schedule_unlimited(selected_, ops, limits_, options_);
    result_.prediction.seconds_unlimited = all.schedule.seconds;
    result_.prediction.saved_bytes = saved_bytes(*all.problem);
    result_.prediction.bound = fastest_possible(*all.problem, all.schedule, limits_);
  }

  const Selected& selected_;
  PlanOptions options_;
  Limits limits_;
  std::array<std::vector<std::uint32_t>, graph::kProgramKinds> ops_;
  std::array<std::optional<Planned>, graph::kProgramKinds> planned_;
  Program result_;
};

}  // namespace

Program make_program(const Selected& selected, const PlanOptions& options) {
  return Planner(selected, options).run();
}

Places places_of(const Selected& selected, const Program& program) {
  Places places;
  for (std::uint32_t i = 0; i < selected.tensors.size(); ++i) {
    if (program.persistent[i] == kNone || !has_fixed_place(selected.tensors[i])) continue;
    const Buffer& buffer = program.buffers[program.persistent[i]];
    places.offsets[selected.tensors[i].name] = buffer.offset;
    places.end = std::max(places.end, buffer.offset + round_up(buffer.bytes, kAlignment));
  }
  return places;
}

Bytes smallest_memory(const Selected& selected, const PlanOptions& options) {
  return Planner(selected, options).smallest();
}

}  // namespace lantern::plan
