#include "plan/checker_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lantern::plan {

namespace {

using graph::Selected;
using graph::SelectedTensor;

class LayoutCheck {
 public:
  LayoutCheck(const Selected& selected, const Program& program, Layout& layout)
      : selected_(selected),
        program_(program),
        layout_(layout),
        in_file_(program.buffers.size(), false) {}

  Fault run() {
    layout_.buffers.resize(program_.buffers.size());
    layout_.regions.resize(program_.buffers.size());
    for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
      if (Fault fault = measure(i)) return fault;
    }
    for (std::uint32_t i = 0; i < program_.slots.size(); ++i) {
      if (Fault fault = check_slot(i)) return fault;
    }
    for (const InstructionList& list : program_.programs) {
      if (Fault fault = check_copies(list.outs)) return fault;
      if (Fault fault = check_copies(list.ins)) return fault;
    }
    for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
      if (Fault fault = join(i)) return fault;
    }
    for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
      if (Fault fault = check_place(i)) return fault;
    }
    return check_persistent();
  }

 private:
  std::string name(std::uint32_t buffer) const { return describe(selected_, program_, buffer); }

  Fault measure(std::uint32_t index) {
    const Buffer& buffer = program_.buffers[index];
    if (buffer.tensor >= selected_.tensors.size())
      return fmt::format("buffer {} names no tensor", index);
    const SelectedTensor& tensor = selected_.tensors[buffer.tensor];
    BufferFacts& facts = layout_.buffers[index];
    facts.persistent = graph::is_persistent(tensor.role);
    if (tensor.images > 0 && tensor.bytes % tensor.images != 0)
      return fmt::format("{} does not divide into {} equal images", tensor.name, tensor.images);
    const std::int64_t all = std::max<std::int64_t>(tensor.images, 1);
    facts.image_bytes = tensor.bytes / all;
    facts.images = all;
    if (buffer.images == 0 && buffer.first_image != 0)
      return fmt::format("{} is whole and starts at image {}", name(index), buffer.first_image);
    if (buffer.images != 0) {
      if (tensor.images == 0) return fmt::format("{} is not divided into images", name(index));
      if (buffer.images < 0 || buffer.first_image < 0 || buffer.images > tensor.images ||
          buffer.first_image > tensor.images - buffer.images)
        return fmt::format("{} has only {} images", name(index), tensor.images);
      facts.first_image = buffer.first_image;
      facts.images = buffer.images;
    }
    if (buffer.bytes != facts.image_bytes * facts.images) {
      return fmt::format("{} is given {} bytes and has {}", name(index), buffer.bytes,
                         facts.image_bytes * facts.images);
    }
    return std::nullopt;
  }

  Fault check_slot(std::uint32_t index) const {
    const Slot& slot = program_.slots[index];
    const bool file = slot.tier == Tier::kFile;
    const Bytes tier = file ? program_.file_bytes : program_.host_bytes;
    if (slot.offset < 0 || slot.bytes < 0 || slot.bytes > tier || slot.offset > tier - slot.bytes)
      return fmt::format("slot {} lies outside its tier of {} bytes", index, tier);
    if (file && slot.offset % kFileAlignment != 0)
      return fmt::format("slot {} of the file is not aligned", index);
    return std::nullopt;
  }

  Fault check_copies(const std::vector<Copy>& copies) {
    for (const Copy& copy : copies) {
      if (copy.buffer >= program_.buffers.size()) return "a copy names no buffer";
      if (copy.slot >= program_.slots.size())
        return fmt::format("the copy of {} names no slot", name(copy.buffer));
      const Slot& slot = program_.slots[copy.slot];
      const Bytes bytes = program_.buffers[copy.buffer].bytes;
      const bool file = slot.tier == Tier::kFile;
      if (slot.bytes < (file ? round_up(bytes, kFileAlignment) : bytes))
        return fmt::format("slot {} is too small for {}", copy.slot, name(copy.buffer));
      if (layout_.buffers[copy.buffer].persistent)
        return fmt::format("persistent {} is copied", name(copy.buffer));
      if (file) in_file_[copy.buffer] = true;
    }
    return std::nullopt;
  }

  Fault join(std::uint32_t index) {
    std::uint32_t root = index;
    for (std::size_t steps = 0;; ++steps) {
      const std::uint32_t next = program_.buffers[root].alias_of;
      if (next == kNone || next == root) break;
      if (next >= program_.buffers.size())
        return fmt::format("{} takes over bytes of no buffer", name(index));
      if (steps > program_.buffers.size())
        return fmt::format("{} takes over its own bytes", name(index));
      root = next;
    }
    const Buffer& buffer = program_.buffers[index];
    const Buffer& own = program_.buffers[root];
    layout_.buffers[index].root = root;
    if (root != index) {
      if (layout_.buffers[index].persistent || layout_.buffers[root].persistent)
        return fmt::format("{} shares bytes with persistent {}", name(index), name(root));
      if (buffer.offset != own.offset || buffer.bytes > own.bytes)
        return fmt::format("{} does not fit into the bytes of {}", name(index), name(root));
    }
    Region& region = layout_.regions[root];
    region.members.push_back(index);
    region.begin = own.offset;
    const Bytes padded = in_file_[index] ? round_up(buffer.bytes, kFileAlignment) : buffer.bytes;
    region.end = std::max(region.end, own.offset + padded);
    return std::nullopt;
  }

  Fault check_place(std::uint32_t index) const {
    const Buffer& buffer = program_.buffers[index];
    if (buffer.offset < 0 || buffer.offset % (in_file_[index] ? kFileAlignment : kAlignment) != 0)
      return fmt::format("{} is not aligned", name(index));
    if (layout_.buffers[index].root != index) return std::nullopt;
    const Region& region = layout_.regions[index];
    if (region.end > program_.arena_bytes)
      return fmt::format("{} lies outside the arena", name(index));
    if (!layout_.buffers[index].persistent && region.end > region.begin &&
        region.begin < program_.persistent_bytes)
      return fmt::format("{} lies among the persistent", name(index));
    return std::nullopt;
  }

  Fault check_persistent() const {
    if (program_.persistent.size() != selected_.tensors.size())
      return "the plan does not say where every persistent tensor lies";
    if (program_.persistent_bytes < 0 || program_.persistent_bytes > program_.arena_bytes)
      return "the persistent tensors do not fit into the arena";
    std::vector<std::uint32_t> all;
    for (std::uint32_t tensor = 0; tensor < selected_.tensors.size(); ++tensor) {
      const std::string& label = selected_.tensors[tensor].name;
      const std::uint32_t buffer = program_.persistent[tensor];
      if (!graph::is_persistent(selected_.tensors[tensor].role)) {
        if (buffer != kNone) return fmt::format("{} is no persistent tensor", label);
        continue;
      }
      if (buffer >= program_.buffers.size() || program_.buffers[buffer].tensor != tensor)
        return fmt::format("persistent {} has no buffer", label);
      if (program_.buffers[buffer].images != 0)
        return fmt::format("persistent {} is not whole", label);
      if (layout_.regions[buffer].end > program_.persistent_bytes)
        return fmt::format("persistent {} lies among the transients", label);
      if (layout_.regions[buffer].end > layout_.regions[buffer].begin) all.push_back(buffer);
    }
    for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (layout_.buffers[i].persistent && program_.persistent[buffer.tensor] != i)
        return fmt::format("persistent {} has two buffers", name(i));
    }
    std::ranges::sort(all, {}, [&](std::uint32_t i) { return layout_.regions[i].begin; });
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (layout_.regions[all[i - 1]].end > layout_.regions[all[i]].begin)
        return fmt::format("{} overlaps {}", name(all[i - 1]), name(all[i]));
    }
    return std::nullopt;
  }

  const Selected& selected_;
  const Program& program_;
  Layout& layout_;
  std::vector<bool> in_file_;  // by buffer: is copied to or from a file
};

}  // namespace

Fault check_layout(const Selected& selected, const Program& program, Layout& layout) {
  return LayoutCheck(selected, program, layout).run();
}

std::string describe(const Selected& selected, const Program& program, std::uint32_t buffer) {
  const Buffer& b = program.buffers[buffer];
  const std::string& name = selected.tensors[b.tensor].name;
  if (b.images == 0) return name;
  return fmt::format("{} images {}..{}", name, b.first_image, b.first_image + b.images - 1);
}

}  // namespace lantern::plan
