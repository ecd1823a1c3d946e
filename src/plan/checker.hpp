#pragma once

#include <optional>
#include <string>

#include "plan/program.hpp"

namespace lantern::plan {

/// Replays the instruction lists of all programs and proves that they compute what the ops in their
/// order compute, whatever the speed of the copies (memory.md 3.6). It shares nothing with the
/// planner but the format. Returns the first fault in plain words, or nothing. What it holds a plan
/// to:
///
/// - Buffers: aligned, inside the arena, as large as their images; a buffer that is copied to or
///   from a file starts at a multiple of kFileAlignment, and the padding of its last page belongs
///   to it. Live buffers never overlap. Persistent tensors have one whole buffer in the first
///   persistent_bytes, alive in all programs, and are never copied; transients lie behind them.
/// - kAlloc and kFree name buffers with bytes of their own, each at most once a program; nothing is
///   alive at the end. A buffer that takes over the bytes of another (`alias_of`) starts where that
///   one starts, is not larger, and is first made by a run that reads the old value at the address
///   it writes and whose op says so (`may_alias`); images that it overwrites are gone.
/// - Versions: the version of an image of a tensor is the number of the program's ops that have
///   written it. An op must find its reads, and what it adds to, in the version that the order of
///   the ops gives. Persistent tensors end a program in their last version. Sums (written, not
///   divided, of an op that runs on ranges) see ranges in ascending order in one buffer, which
///   nobody touches in between; so does scratch that `carries`.
/// - Every op covers its images exactly once, in ranges that start at multiples of image_group;
/// runs
///   marked `again` lie within what has run, add nothing up and write nothing persistent.
/// - Copies: started once each, in ascending order; a source is complete and unchanged, a target
///   untouched, until waited for. A copy in finds in its slot the same images, copied there by a
///   copy out that was waited for and not overwritten since; a copy out does not write where a copy
///   in under way reads. Nothing is under way at the end.
/// - live_peak_bytes is persistent_bytes plus the largest sum, over the moments of all programs, of
///   Buffer::bytes of the allocated buffers (without padding; buffers that took over bytes do not
///   count again).
std::optional<std::string> find_fault(const graph::Selected& selected, const Program& program);

/// Throws an internal Error with the fault; run on every plan.
void check(const graph::Selected& selected, const Program& program);

}  // namespace lantern::plan
