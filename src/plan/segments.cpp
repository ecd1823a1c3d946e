#include "plan/segments.hpp"

#include <algorithm>
#include <bit>
#include <unordered_set>

namespace lantern::plan {

namespace {

constexpr std::int64_t kGroup = 4;

int most_chunks_of(const graph::SelectedOp& op) {
  if (op.images == 0) return 1;
  const std::int64_t group = std::max<std::int64_t>(1, op.image_group);
  if (group != 1 && group != kGroup) return 1;  // the only group, then
  return static_cast<int>(std::bit_floor(
      static_cast<std::uint64_t>(std::max<std::int64_t>(1, ceil_div(op.images, group)))));
}

}  // namespace

std::vector<Segment> find_segments(const graph::Selected& selected,
                                   std::span<const std::uint32_t> ops) {
  std::vector<Segment> segments;
  std::unordered_set<std::uint32_t> written;  // undivided tensors, by ops of the row
  std::unordered_set<std::uint32_t> read;
  for (std::uint32_t position = 0; position < ops.size(); ++position) {
    const graph::SelectedOp& op = selected.ops[ops[position]];
    const auto undivided = [&](std::uint32_t tensor) {
      return selected.tensors[tensor].images == 0;
    };
    bool joins = !segments.empty() && op.images > 0 && segments.back().images == op.images;
    for (const std::uint32_t tensor : op.reads) joins &= !written.contains(tensor);
    for (const std::uint32_t tensor : op.writes)
      joins &= !written.contains(tensor) && !(undivided(tensor) && read.contains(tensor));
    if (!joins) {
      segments.push_back({position, position, op.images, 1 << 30});
      written.clear();
      read.clear();
    }
    Segment& segment = segments.back();
    segment.last = position;
    segment.most_chunks = std::min(segment.most_chunks, most_chunks_of(op));
    for (const std::uint32_t tensor : op.reads) {
      if (undivided(tensor)) read.insert(tensor);
    }
    for (const std::uint32_t tensor : op.writes) {
      if (undivided(tensor)) written.insert(tensor);
    }
  }
  return segments;
}

std::vector<std::int64_t> chunk_ends(std::int64_t images, int chunks) {
  const std::int64_t unit = ceil_div(images, kGroup) >= chunks ? kGroup : 1;
  const std::int64_t units = ceil_div(images, unit);
  std::vector<std::int64_t> ends;
  for (int part = 1; part <= chunks; ++part) {
    const std::int64_t end = std::min(images, part * units / chunks * unit);
    if (end > (ends.empty() ? 0 : ends.back())) ends.push_back(end);
  }
  return ends;
}

}  // namespace lantern::plan
