#include <algorithm>
#include <limits>

#include "plan/schedule.hpp"

namespace lantern::plan {

namespace {

class Simulation {
 public:
  Simulation(const Problem& problem, const Limits& limits, Schedule& schedule)
      : problem_(problem),
        limits_(limits),
        schedule_(schedule),
        entries_(static_cast<std::int32_t>(schedule.entries.size())) {}

  void run() {
    order_copies();
    measure_live();
    measure_slots();
    nominal_.resize(static_cast<std::size_t>(entries_) + 1);
    for (std::int32_t e = 0; e < entries_; ++e) nominal_[at(e) + 1] = nominal_[at(e)] + duration(e);
    plan_arrivals();
    for (entry_ = 0; entry_ < entries_; ++entry_) pass_entry();
    finish();
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  double duration(std::int32_t e) const {
    return problem_.steps[schedule_.entries[at(e)].step].seconds;
  }
  const Stay& stay_of(const CopyOut& out) const { return schedule_.stays[out.stay]; }
  Bytes block_bytes(std::uint32_t stay) const {
    return schedule_.blocks[schedule_.stays[stay].block].bytes;
  }
  const LinkSpec& link(Tier tier) const {
    return tier == Tier::kHost ? limits_.host : limits_.disk;
  }

  // Copies out start in the order in which their bytes are complete.
  void order_copies() {
    std::ranges::stable_sort(schedule_.outs, {}, &CopyOut::after);
    for (std::size_t i = 0; i < schedule_.outs.size(); ++i)
      schedule_.stays[schedule_.outs[i].stay].out = static_cast<std::int32_t>(i);
    out_of_slot_.assign(schedule_.slots.size(), 0);
    for (std::size_t i = 0; i < schedule_.outs.size(); ++i)
      out_of_slot_[schedule_.outs[i].slot] = i;
    leaving_.resize(schedule_.outs.size());
    for (std::size_t i = 0; i < leaving_.size(); ++i) leaving_[i] = i;
    std::ranges::stable_sort(leaving_, {},
                             [&](std::size_t i) { return stay_of(schedule_.outs[i]).end; });
  }

  void measure_live() {
    live_.assign(static_cast<std::size_t>(entries_) + 2, 0);
    for (const Block& block : schedule_.blocks) {
      live_[at(block.begin)] += block.bytes;
      live_[at(block.end) + 1] -= block.bytes;
    }
    schedule_.peak = 0;
    for (std::int32_t e = 0; e < entries_; ++e) {
      if (e > 0) live_[at(e)] += live_[at(e) - 1];
      if (live_[at(e)] > schedule_.peak) {
        schedule_.peak = live_[at(e)];
        schedule_.peak_entry = e;
      }
    }
    schedule_.overflow = std::max<Bytes>(0, schedule_.peak - limits_.memory);
  }

  void measure_slots() {
    schedule_.tier_overflow = 0;
    if (schedule_.slots.empty()) return;
    for (const Tier tier : {Tier::kHost, Tier::kFile}) {
      std::vector<std::pair<std::int32_t, Bytes>> changes;
      for (const SlotLife& slot : schedule_.slots) {
        if (slot.tier != tier) continue;
        changes.emplace_back(slot.begin, slot.bytes);
        changes.emplace_back(slot.end + 1, -slot.bytes);
      }
      std::ranges::sort(changes);
      Bytes held = 0;
      Bytes most = 0;
      for (const auto& [entry, change] : changes) most = std::max(most, held += change);
      const Bytes size = tier == Tier::kHost ? limits_.host_memory : limits_.disk_memory;
      schedule_.tier_overflow += std::max<Bytes>(0, most - size);
    }
  }

  // The latest start of every copy in with which all of them come in time, were nothing to stall.
  void plan_arrivals() {
    latest_.resize(schedule_.ins.size());
    double next = std::numeric_limits<double>::max();
    for (std::size_t i = schedule_.ins.size(); i-- > 0;) {
      const double seconds = in_seconds(i);
      next = std::min(next, nominal_[at(schedule_.ins[i].needed)]) - seconds;
      // Early enough for a few copies to be late.
      latest_[i] = next - 3 * seconds - 0.01 * nominal_.back();
    }
  }

  double in_seconds(std::size_t i) const {
    const SlotLife& slot = schedule_.slots[schedule_.ins[i].slot];
    return link(slot.tier).in_seconds(slot.bytes);
  }

  void pass_entry() {
    while (next_leaving_ < leaving_.size() &&
           stay_of(schedule_.outs[leaving_[next_leaving_]]).end < entry_) {
      const std::size_t out = leaving_[next_leaving_++];
      pending_.push_back(out);
      pending_bytes_ += block_bytes(schedule_.outs[out].stay);
    }
    // What has been out for a while is waited for now: that costs nothing.
    std::erase_if(pending_, [&](std::size_t out) {
      const CopyOut& copy = schedule_.outs[out];
      const SlotLife& slot = schedule_.slots[copy.slot];
      if (copy.done + 0.3 * link(slot.tier).out_seconds(slot.bytes) > time_) return false;
      release(out);
      return true;
    });
    fetch_ahead();
    while (live_[at(entry_)] + pending_bytes_ > limits_.memory && !pending_.empty()) wait_oldest();
    while (waited_in_ < issued_ && schedule_.ins[waited_in_].needed <= entry_)
      time_ = std::max(time_, in_done_[waited_in_++]);
    const bool copying = out_free_ > time_ || in_free_ > time_;
    time_ += duration(entry_) * (copying ? limits_.contention : 1.0);
    while (started_out_ < schedule_.outs.size() && schedule_.outs[started_out_].after <= entry_)
      start_out(schedule_.outs[started_out_++]);
  }

  void start_out(CopyOut& copy) {
    const SlotLife& slot = schedule_.slots[copy.slot];
    copy.done = std::max(time_, out_free_) + link(slot.tier).out_seconds(slot.bytes);
    out_free_ = copy.done;
    schedule_.bytes_out += slot.bytes;
  }

  void release(std::size_t out) {
    CopyOut& copy = schedule_.outs[out];
    copy.freed = entry_;
    Block& block = schedule_.blocks[schedule_.stays[copy.stay].block];
    block.end = std::max(block.end, entry_ - 1);
    pending_bytes_ -= block.bytes;
  }

  void wait_oldest() {
    const auto oldest = std::ranges::min_element(pending_);
    time_ = std::max(time_, schedule_.outs[*oldest].done);
    release(*oldest);
    pending_.erase(oldest);
  }

  // Starts the copies in whose time has come and which the memory has room for up to their use.
  void fetch_ahead() {
    for (; issued_ < schedule_.ins.size(); ++issued_) {
      CopyIn& in = schedule_.ins[issued_];
      const bool now = in.needed <= entry_;
      const Bytes bytes = block_bytes(in.stay);
      if (!now) {
        if (nominal_[at(entry_)] < latest_[issued_]) return;
        if (room_from_ < 0) room_from_ = first_entry_with_room(in.needed, bytes);
        if (entry_ < room_from_) return;
        if (live_[at(entry_)] + pending_bytes_ + bytes > limits_.memory) return;
        const std::size_t out = out_of_slot_[in.slot];
        if (out >= started_out_ || schedule_.outs[out].done > time_) return;
      }
      time_ = std::max(time_, now ? schedule_.outs[out_of_slot_[in.slot]].done : time_);
      for (std::int32_t e = entry_; e < in.needed; ++e) live_[at(e)] += bytes;
      in.issue = entry_;
      schedule_.blocks[schedule_.stays[in.stay].block].begin = entry_;
      while (now && live_[at(entry_)] + pending_bytes_ > limits_.memory && !pending_.empty())
        wait_oldest();
      in_free_ = std::max(time_, in_free_) + in_seconds(issued_);
      in_done_.push_back(in_free_);
      schedule_.bytes_in += schedule_.slots[in.slot].bytes;
      room_from_ = -1;
    }
  }

  std::int32_t first_entry_with_room(std::int32_t needed, Bytes bytes) const {
    std::int32_t e = needed;
    while (e > entry_ && live_[at(e) - 1] + bytes <= limits_.memory) --e;
    return e;
  }

  void finish() {
    entry_ = entries_;
    for (const std::size_t out : pending_) release(out);
    for (; next_leaving_ < leaving_.size(); ++next_leaving_) release(leaving_[next_leaving_]);
    schedule_.seconds = std::max(time_, out_free_);
  }

  const Problem& problem_;
  const Limits& limits_;
  Schedule& schedule_;
  std::int32_t entries_;
  std::int32_t entry_ = 0;
  double time_ = 0, out_free_ = 0, in_free_ = 0;
  std::vector<Bytes> live_;
  std::vector<double> nominal_;  // start of every entry were nothing to stall
  std::vector<double> latest_;   // by copy in
  std::vector<double> in_done_;  // by copy in
  std::vector<std::size_t> out_of_slot_;
  std::vector<std::size_t> leaving_;  // copies out in the order in which their stays end
  std::vector<std::size_t> pending_;  // copies out whose bytes are free when they are done
  Bytes pending_bytes_ = 0;
  std::size_t next_leaving_ = 0, started_out_ = 0, issued_ = 0, waited_in_ = 0;
  std::int32_t room_from_ = -1;
};

}  // namespace

void simulate(const Problem& problem, const Limits& limits, Schedule& schedule) {
  schedule.bytes_out = 0;
  schedule.bytes_in = 0;
  Simulation(problem, limits, schedule).run();
}

}  // namespace lantern::plan
