#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "draw/chart.hpp"

namespace lantern::draw {

/// Maps values to [0, 1] along an axis; needs low < high, and 0 < low when logarithmic.
struct Scale {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  /// Values beyond the ends give the ends; so does a value that has no logarithm (0).
  double position(double value) const;
};

struct Tick {
  double value = 0;
  std::string label;  ///< empty: a line of the grid only
};

/// Linear from 0 (or the smallest negative average) as long as no finite average exceeds
/// `max_loss`, else logarithmic.
Scale loss_scale(std::span<const LossPoint> losses, double max_loss);

/// Round values within the scale, about `wanted` of them with a label.
std::vector<Tick> make_ticks(const Scale& scale, int wanted);

/// Short decimal text: "0.05", "1200", "2e-06".
std::string short_number(double value);

/// At most four points a bucket (first, smallest, largest, last in x), in order, so that millions
/// of iterations keep their spikes and the picture its size. Points that are not finite are left
/// out. `points` must be sorted.
std::vector<SeriesPoint> thin_out(std::span<const SeriesPoint> points, std::int64_t last_iteration,
                                  int buckets);

}  // namespace lantern::draw
