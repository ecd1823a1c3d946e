#pragma once

#include <array>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace lantern::graph {

/// A tensor as it lies in memory: the physical choice has been made, only numbers are left.
struct SelectedTensor {
  std::string name;
  Role role = Role::kActivation;
  Bytes bytes = 0;     ///< with channel padding; 0 is allowed
  std::string layout;  ///< text for dumps: "nchw", "nChw16c", "oihw:..."
  Shape shape;
  DType dtype = DType::kF32;
  /// Images that the bytes divide into, equal parts one behind the other; 0: not divided.
  std::int64_t images = 0;
};

/// Output `output` of an op may take the bytes of input `input` when that is its last use.
struct AliasHint {
  int output = 0;
  int input = 0;
};

struct SelectedOp {
  std::string op;      ///< kind, e.g. "conv_forward", "reorder"
  std::string kernel;  ///< implementation, e.g. "onednn:jit:avx512_core"
  std::string label;   ///< name of the first output, for people
  ProgramKind program = ProgramKind::kForward;
  int layer = -1;
  std::vector<std::uint32_t> reads;   ///< indices of SelectedTensor
  std::vector<std::uint32_t> writes;  ///< outputs, then scratch
  std::vector<bool> accumulates;      ///< parallel to writes
  std::vector<AliasHint> may_alias;   ///< indices into writes and reads
  double flops = 0;
  Bytes bytes_touched = 0;
  std::int64_t image_group =
      0;  ///< images summed per call where a sum over the batch is made; 0: none
  /// Images of the mini-batch when the op may run on any range of them that starts at a multiple of
  /// `image_group`; operands divided into images then give their part of that range, the others are
  /// used whole. 0: runs whole. Written operands that are not divided are sums: runs come in
  /// ascending order, and the value is complete after the last.
  std::int64_t images = 0;
  bool carries = false;     ///< scratch holds sums between the runs
  std::int64_t groups = 1;  ///< of channels, of a convolution
  double seconds = 0;       ///< predicted time for all images; 0: not known
  /// Of every run, however few its images are (weights are read anew), beside what starting one
  /// costs on the device.
  double fixed_seconds = 0;
};

/// What `select` hands to the planner. `tensors[i]` for i < number of graph tensors is graph tensor
/// i.
struct Selected {
  std::vector<SelectedTensor> tensors;
  std::vector<SelectedOp> ops;
  std::string dump() const;
};

}  // namespace lantern::graph
