#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "plan/checker_layout.hpp"

namespace lantern::plan {

/// What arena and slots hold at one moment of a program: which version of which images.
class Memory {
 public:
  /// The version of an image is the number of ops that have written it.
  using Version = std::int32_t;
  static constexpr Version kUnset = -1;
  static constexpr Version kPartial = -2;  ///< a sum over ranges that is not complete

  Memory(const graph::Selected& selected, const Program& program, const Layout& layout);

  /// Forgets all but the persistent tensors, whose versions start at 0.
  void start(const InstructionList& list);
  /// Nothing may be left alive or under way.
  Fault finish() const;

  Fault allocate(std::uint32_t buffer);
  Fault release(std::uint32_t buffer);
  Fault start_out(std::uint32_t copy);
  Fault start_in(std::uint32_t copy);
  Fault wait_out(std::uint32_t copies);
  Fault wait_in(std::uint32_t copies);

  /// Whether a run may touch a buffer now.
  Fault check_access(std::uint32_t buffer, bool writes) const;
  /// By image of the buffer.
  std::span<Version> versions(std::uint32_t buffer) {
    return std::span(versions_).subspan(first_version_[buffer],
                                        static_cast<std::size_t>(facts(buffer).images));
  }
  /// Images of a buffer are written: what other buffers hold in these bytes is gone.
  void overwrite(std::uint32_t buffer, std::int64_t first, std::int64_t images);

  Bytes live_peak() const { return live_peak_; }

 private:
  struct Stored {
    bool valid = false;
    std::uint32_t out = 0;     ///< the copy that brought it
    std::uint32_t buffer = 0;  ///< the copy's source
    std::size_t versions = 0;  ///< where the versions of its images lie in stored_versions_
  };

  const BufferFacts& facts(std::uint32_t buffer) const { return layout_.buffers[buffer]; }
  std::string name(std::uint32_t buffer) const { return describe(selected_, program_, buffer); }
  std::string slot_name(std::uint32_t slot) const;
  bool overlap(std::uint32_t slot, std::uint32_t other) const;
  void forget(std::uint32_t root);
  void drop_stored(std::uint32_t slot);

  const graph::Selected& selected_;
  const Program& program_;
  const Layout& layout_;
  const InstructionList* list_ = nullptr;
  std::vector<std::size_t> first_version_;  // by buffer
  std::vector<Version> versions_;
  std::vector<bool> alive_, allocated_, reading_in_;  // by root
  std::vector<std::int32_t> copying_out_;             // by root: copies under way
  std::map<Bytes, std::uint32_t> live_;               // roots that have bytes, by offset
  std::uint32_t outs_started_ = 0, outs_done_ = 0, ins_started_ = 0, ins_done_ = 0;
  std::vector<Stored> stored_;  // by slot
  std::vector<Version> stored_versions_;
  std::array<std::map<Bytes, std::uint32_t>, 2> filled_;  // by tier: slots with contents, by offset
  std::int64_t live_count_ = 0;
  Bytes live_bytes_ = 0, live_peak_ = 0;
};

}  // namespace lantern::plan
