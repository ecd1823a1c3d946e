#pragma once

#include "core/device_spec.hpp"
#include "graph/selected.hpp"

namespace lantern::plan {

/// Seconds of one op for all of its images by the roofline model (memory.md, section 1):
/// max(flops / (peak x efficiency of its class), bytes / memory bandwidth). What it costs to start
/// a run comes on top, see run_seconds. The class is read from the kind's name and, for
/// convolutions, from the shape of the weights. Scratch counts no bytes: another machine's kernels
/// need another amount.
double op_seconds(const graph::Selected& selected, const graph::SelectedOp& op,
                  const DeviceSpec& device);

/// Fills SelectedOp::seconds of every op with it; no more of a run is fixed than its start.
void set_costs(graph::Selected& selected, const DeviceSpec& device);

/// Seconds of a run of an op on `images` images (0: the whole op) with `start_seconds` to start it
/// on the device.
inline double run_seconds(const graph::SelectedOp& op, std::int64_t images, double start_seconds) {
  const double part =
      images == 0 ? 1.0 : static_cast<double>(images) / static_cast<double>(op.images);
  return start_seconds + op.fixed_seconds + op.seconds * part;
}

}  // namespace lantern::plan
