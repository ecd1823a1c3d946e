#include "plan/checker_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lantern::plan {

Memory::Memory(const graph::Selected& selected, const Program& program, const Layout& layout)
    : selected_(selected), program_(program), layout_(layout) {
  std::size_t images = 0;
  for (const BufferFacts& buffer : layout.buffers) {
    first_version_.push_back(images);
    images += static_cast<std::size_t>(buffer.images);
  }
  versions_.resize(images);
}

void Memory::start(const InstructionList& list) {
  list_ = &list;
  std::ranges::fill(versions_, kUnset);
  alive_.assign(layout_.buffers.size(), false);
  allocated_ = reading_in_ = alive_;
  copying_out_.assign(layout_.buffers.size(), 0);
  live_.clear();
  for (std::uint32_t i = 0; i < layout_.buffers.size(); ++i) {
    if (!facts(i).persistent) continue;
    alive_[i] = true;
    std::ranges::fill(versions(i), 0);
  }
  outs_started_ = outs_done_ = ins_started_ = ins_done_ = 0;
  stored_.assign(program_.slots.size(), {});
  stored_versions_.clear();
  for (auto& slots : filled_) slots.clear();
  live_count_ = 0;
  live_bytes_ = program_.persistent_bytes;
  live_peak_ = std::max(live_peak_, live_bytes_);
}

Fault Memory::finish() const {
  if (live_count_ != 0) {
    for (std::uint32_t i = 0; i < layout_.buffers.size(); ++i) {
      if (alive_[i] && !facts(i).persistent) return fmt::format("{} is never freed", name(i));
    }
  }
  if (outs_started_ != list_->outs.size())
    return fmt::format("the copy out of {} is never started",
                       name(list_->outs[outs_started_].buffer));
  if (ins_started_ != list_->ins.size())
    return fmt::format("the copy in of {} is never started", name(list_->ins[ins_started_].buffer));
  if (outs_done_ != outs_started_)
    return fmt::format("the copy out of {} is never waited for",
                       name(list_->outs[outs_done_].buffer));
  if (ins_done_ != ins_started_)
    return fmt::format("the copy in of {} is never waited for", name(list_->ins[ins_done_].buffer));
  return std::nullopt;
}

Fault Memory::allocate(std::uint32_t buffer) {
  if (buffer >= layout_.buffers.size()) return "an allocation names no buffer";
  if (facts(buffer).persistent) return fmt::format("persistent {} is allocated", name(buffer));
  if (facts(buffer).root != buffer)
    return fmt::format("{} is allocated and has no bytes of its own", name(buffer));
  if (allocated_[buffer]) return fmt::format("{} is allocated twice", name(buffer));
  const Region& region = layout_.regions[buffer];
  if (region.end > region.begin) {
    const auto next = live_.lower_bound(region.begin);
    if (next != live_.end() && next->first < region.end)
      return fmt::format("{} overlaps live {}", name(buffer), name(next->second));
    if (next != live_.begin() && layout_.regions[std::prev(next)->second].end > region.begin)
      return fmt::format("{} overlaps live {}", name(buffer), name(std::prev(next)->second));
    live_.emplace_hint(next, region.begin, buffer);
  }
  allocated_[buffer] = true;
  alive_[buffer] = true;
  ++live_count_;
  live_bytes_ += program_.buffers[buffer].bytes;
  live_peak_ = std::max(live_peak_, live_bytes_);
  forget(buffer);
  return std::nullopt;
}

Fault Memory::release(std::uint32_t buffer) {
  if (buffer >= layout_.buffers.size()) return "a free names no buffer";
  if (facts(buffer).persistent) return fmt::format("persistent {} is freed", name(buffer));
  if (facts(buffer).root != buffer)
    return fmt::format("{} is freed and has no bytes of its own", name(buffer));
  if (!alive_[buffer]) return fmt::format("{} is freed and is not alive", name(buffer));
  if (copying_out_[buffer] > 0)
    return fmt::format("{} is freed while it is copied out", name(buffer));
  if (reading_in_[buffer]) return fmt::format("{} is freed while it is copied in", name(buffer));
  const Region& region = layout_.regions[buffer];
  if (region.end > region.begin) live_.erase(region.begin);
  alive_[buffer] = false;
  --live_count_;
  live_bytes_ -= program_.buffers[buffer].bytes;
  forget(buffer);
  return std::nullopt;
}

void Memory::forget(std::uint32_t root) {
  for (const std::uint32_t member : layout_.regions[root].members)
    std::ranges::fill(versions(member), kUnset);
}

Fault Memory::check_access(std::uint32_t buffer, bool writes) const {
  const std::uint32_t root = facts(buffer).root;
  if (!alive_[root]) return fmt::format("{}, which is not alive", name(buffer));
  if (reading_in_[root]) return fmt::format("{} while it is copied in", name(buffer));
  if (writes && copying_out_[root] > 0)
    return fmt::format("{} while it is copied out", name(buffer));
  return std::nullopt;
}

void Memory::overwrite(std::uint32_t buffer, std::int64_t first, std::int64_t images) {
  const std::uint32_t root = facts(buffer).root;
  const Bytes begin = first * facts(buffer).image_bytes;
  const Bytes end = begin + images * facts(buffer).image_bytes;
  for (const std::uint32_t other : layout_.regions[root].members) {
    const Bytes size = facts(other).image_bytes;
    if (other == buffer || size == 0 || begin == end) continue;
    const std::span<Version> held = versions(other);
    const auto count = static_cast<std::int64_t>(held.size());
    for (std::int64_t i = begin / size; i < count && i * size < end; ++i)
      held[static_cast<std::size_t>(i)] = kUnset;
  }
}

std::string Memory::slot_name(std::uint32_t slot) const {
  return fmt::format("slot {} {}", slot,
                     program_.slots[slot].tier == Tier::kFile ? "of the file" : "of the host");
}

bool Memory::overlap(std::uint32_t slot, std::uint32_t other) const {
  const Slot& x = program_.slots[slot];
  const Slot& y = program_.slots[other];
  return x.tier == y.tier && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

// Contents of slots that overlap this one are gone.
void Memory::drop_stored(std::uint32_t slot) {
  stored_[slot].valid = false;
  const Slot& place = program_.slots[slot];
  auto& filled = filled_[static_cast<std::size_t>(place.tier)];
  auto next = filled.lower_bound(place.offset);
  if (next != filled.begin() && overlap(std::prev(next)->second, slot)) --next;
  while (next != filled.end() && overlap(next->second, slot)) {
    stored_[next->second].valid = false;
    next = filled.erase(next);
  }
}

Fault Memory::start_out(std::uint32_t copy) {
  if (copy != outs_started_ || copy >= list_->outs.size())
    return fmt::format("copy out {} is started where {} is due", copy, outs_started_);
  const auto [buffer, slot] = list_->outs[copy];
  const std::uint32_t root = facts(buffer).root;
  if (!alive_[root]) return fmt::format("{} is copied out and is not alive", name(buffer));
  if (reading_in_[root]) return fmt::format("{} is copied out while it is copied in", name(buffer));
  const std::span<Version> held = versions(buffer);
  if (std::ranges::any_of(held, [](Version version) { return version < 0; }))
    return fmt::format("{} is copied out and is not complete", name(buffer));
  for (std::uint32_t in = ins_done_; in < ins_started_; ++in) {
    if (slot == list_->ins[in].slot || overlap(slot, list_->ins[in].slot)) {
      return fmt::format("{} is copied out to {} while {} is copied in from there", name(buffer),
                         slot_name(slot), name(list_->ins[in].buffer));
    }
  }
  drop_stored(slot);
  stored_[slot] = {
      .valid = true, .out = copy, .buffer = buffer, .versions = stored_versions_.size()};
  stored_versions_.insert(stored_versions_.end(), held.begin(), held.end());
  const Slot& place = program_.slots[slot];
  if (place.bytes > 0) filled_[static_cast<std::size_t>(place.tier)].emplace(place.offset, slot);
  ++copying_out_[root];
  ++outs_started_;
  return std::nullopt;
}

Fault Memory::start_in(std::uint32_t copy) {
  if (copy != ins_started_ || copy >= list_->ins.size())
    return fmt::format("copy in {} is started where {} is due", copy, ins_started_);
  const auto [buffer, slot] = list_->ins[copy];
  if (facts(buffer).root != buffer)
    return fmt::format("{} is copied in and has no bytes of its own", name(buffer));
  if (!alive_[buffer]) return fmt::format("{} is copied in and is not alive", name(buffer));
  if (copying_out_[buffer] > 0)
    return fmt::format("{} is copied in while it is copied out", name(buffer));
  if (reading_in_[buffer]) return fmt::format("{} is copied in twice at once", name(buffer));
  const Stored& stored = stored_[slot];
  if (!stored.valid)
    return fmt::format("{} is copied in from {}, which holds nothing", name(buffer),
                       slot_name(slot));
  if (program_.buffers[stored.buffer].tensor != program_.buffers[buffer].tensor ||
      facts(stored.buffer).first_image != facts(buffer).first_image ||
      facts(stored.buffer).images != facts(buffer).images) {
    return fmt::format("{} is copied in from {}, which holds {}", name(buffer), slot_name(slot),
                       name(stored.buffer));
  }
  if (stored.out >= outs_done_)
    return fmt::format("{} is copied in from {} before its copy out was waited for", name(buffer),
                       slot_name(slot));
  forget(buffer);
  reading_in_[buffer] = true;
  ++ins_started_;
  return std::nullopt;
}

Fault Memory::wait_out(std::uint32_t copies) {
  if (copies > outs_started_)
    return fmt::format("a wait for {} copies out when {} are started", copies, outs_started_);
  for (; outs_done_ < copies; ++outs_done_)
    --copying_out_[facts(list_->outs[outs_done_].buffer).root];
  return std::nullopt;
}

Fault Memory::wait_in(std::uint32_t copies) {
  if (copies > ins_started_)
    return fmt::format("a wait for {} copies in when {} are started", copies, ins_started_);
  for (; ins_done_ < copies; ++ins_done_) {
    const auto [buffer, slot] = list_->ins[ins_done_];
    reading_in_[buffer] = false;
    // Nobody may have copied into the slot meanwhile, so it still holds what it held at the start.
    std::copy_n(stored_versions_.begin() + static_cast<std::ptrdiff_t>(stored_[slot].versions),
                facts(buffer).images, versions(buffer).begin());
  }
  return std::nullopt;
}

}  // namespace lantern::plan
