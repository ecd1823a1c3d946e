#include "exec/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/file.hpp"
#include "core/log.hpp"

namespace lantern::exec {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string run_members(const graph::Selected& selected, const plan::Run& run) {
  const graph::SelectedOp& op = selected.ops[run.op];
  return fmt::format(
      R"("name":{},"args":{{"layer":{},"tensor":{},"kernel":{},"first_image":{},"images":{},"again":{}}})",
      quoted(op.op), op.layer, quoted(op.label), quoted(op.kernel), run.first_image, run.images,
      run.again);
}

std::string copy_members(const graph::Selected& selected, const plan::Program& program,
                         const plan::Copy& copy) {
  const plan::Buffer& buffer = program.buffers[copy.buffer];
  const plan::Slot& slot = program.slots[copy.slot];
  return fmt::format(R"("name":{},"args":{{"tier":"{}","bytes":{},"first_image":{},"images":{}}})",
                     quoted(selected.tensors[buffer.tensor].name),
                     slot.tier == plan::Tier::kHost ? "host" : "file", buffer.bytes,
                     buffer.first_image, buffer.images);
}

}  // namespace

Trace::Trace(std::size_t events_per_track) {
  for (Events& track : tracks_) track.events.resize(events_per_track);
}

std::uint32_t Trace::attach(const graph::Selected& selected, const plan::Program& program) {
  std::array<Names, graph::kProgramKinds>& source = sources_.emplace_back();
  for (std::size_t kind = 0; kind < source.size(); ++kind) {
    const plan::InstructionList& list = program.programs[kind];
    for (const plan::Run& run : list.runs) source[kind].runs.push_back(run_members(selected, run));
    for (const plan::Copy& copy : list.outs)
      source[kind].outs.push_back(copy_members(selected, program, copy));
    for (const plan::Copy& copy : list.ins)
      source[kind].ins.push_back(copy_members(selected, program, copy));
  }
  return static_cast<std::uint32_t>(sources_.size() - 1);
}

void Trace::add(Track track, const TraceEvent& event) {
  Events& events = tracks_[track];
  if (events.count == events.events.size()) {
    ++events.dropped;
    return;
  }
  events.events[events.count++] = event;
}

std::size_t Trace::dropped() const {
  std::size_t sum = 0;
  for (const Events& track : tracks_) sum += track.dropped;
  return sum;
}

const std::string& Trace::name_of(Track track, const TraceEvent& event) const {
  const Names& names = sources_[event.source][event.program];
  if (event.kind == TraceEvent::Kind::kRun) return names.runs[event.index];
  return track == kOut ? names.outs[event.index] : names.ins[event.index];
}

std::string Trace::json() const {
  static constexpr std::array<std::string_view, kTracks> kNames{"compute", "copy out", "copy in"};
  static constexpr std::array<std::string_view, graph::kProgramKinds> kPrograms{
      "mini_batch", "check", "update", "forward"};
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  auto out = std::back_inserter(text);
  for (std::size_t track = 0; track < kTracks; ++track) {
    fmt::format_to(out,
                   R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}},)"
                   "\n",
                   track, kNames[track]);
  }
  for (std::size_t track = 0; track < kTracks; ++track) {
    for (std::size_t i = 0; i < tracks_[track].count; ++i) {
      const TraceEvent& event = tracks_[track].events[i];
      const double begin = static_cast<double>(event.begin_ns) / 1e3;
      const double duration = static_cast<double>(event.end_ns - event.begin_ns) / 1e3;
      if (event.kind == TraceEvent::Kind::kLive) {
        fmt::format_to(
            out,
            R"({{"ph":"C","pid":1,"ts":{:.3f},"name":"live bytes","args":{{"bytes":{}}}}},)"
            "\n",
            begin, event.live);
        continue;
      }
      std::string members;
      switch (event.kind) {
        case TraceEvent::Kind::kProgram:
          members = fmt::format(R"("name":"{}")", kPrograms[event.program]);
          break;
        case TraceEvent::Kind::kWaitOut:
        case TraceEvent::Kind::kWaitIn:
          members = fmt::format(R"("name":"wait for {}","args":{{"copies":{}}})",
                                event.kind == TraceEvent::Kind::kWaitOut ? "copy out" : "copy in",
                                event.index);
          break;
        default:
          members = name_of(static_cast<Track>(track), event);
      }
      fmt::format_to(out,
                     R"({{"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},{}}},)"
                     "\n",
                     track, begin, duration, members);
    }
  }
  fmt::format_to(out, R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":"lantern"}}}})"
                      "\n]}}\n");
  return text;
}

void Trace::write(const std::filesystem::path& target) const {
  if (dropped() > 0) {
    log::warning("{}: the trace was full, the last {} events are not in it", target.string(),
                 dropped());
  }
  write_file_atomically(target, json());
}

}  // namespace lantern::exec
