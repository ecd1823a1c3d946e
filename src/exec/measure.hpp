#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "core/device_spec.hpp"
#include "device/arena.hpp"
#include "graph/selected.hpp"
#include "ops/select.hpp"

namespace lantern::exec {

/// Times ops on their real kernels, each distinct one once (kind, kernel, shapes and layouts): a
/// warm-up and the median of three runs, on as many images as a few milliseconds hold and on as few
/// as possible, which tells what a run costs and what an image does. Remembers what it has timed,
/// so that other mini-batches of a network cost little more.
class CostMeter {
 public:
  /// `device` is this machine: what starting a run costs is not counted (plan::run_seconds adds
  /// it), and ops whose operands are too large to be run for a measurement take what its figures
  /// say: those beyond `most_memory`.
  CostMeter(int threads, DeviceSpec device, Bytes most_memory = 1_GiB)
      : threads_(threads), device_(std::move(device)), most_memory_(most_memory) {}

  /// Fills SelectedOp::seconds and fixed_seconds of `out`, which holds the same ops as `selection`.
  /// The kernels run on memory of the meter's own.
  void fill(const ops::Selection& selection, graph::Selected& out);
  /// Kernels run on this memory from now on, which has room for any one of them on a few images;
  /// empty: on memory of the meter's own again.
  void borrow(std::span<std::byte> memory) { borrowed_ = memory; }
  /// Gives the memory back that kernels ran on; what was timed is remembered.
  void release_memory() { memory_ = device::Arena(); }
  /// Distinct ops timed so far.
  std::size_t timed() const { return costs_.size(); }

 private:
  double measure(const ops::Selection& selection, std::size_t op, std::int64_t images);
  std::byte* provide(Bytes bytes);

  int threads_;
  DeviceSpec device_;
  Bytes most_memory_;
  device::Arena memory_;
  std::span<std::byte> borrowed_;
  struct Cost {
    double run = 0;    ///< whatever its images
    double image = 0;  ///< of one image, or of the whole op
  };
  Cost cost_of(const ops::Selection& selection, std::size_t op);
  std::map<std::string, Cost> costs_;
};

}  // namespace lantern::exec
