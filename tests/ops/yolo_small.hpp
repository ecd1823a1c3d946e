#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/rng.hpp"
#include "ops/yolo_loss/yolo_loss.hpp"

namespace lantern::ops {

template <typename T>
YoloImageStats delta_of(const YoloParams& p, const std::vector<T>& activated,
                        const std::vector<float>& truth, std::vector<T>& delta) {
  delta.assign(activated.size(), std::numeric_limits<T>::quiet_NaN());  // must be overwritten
  std::vector<std::byte> scratch(static_cast<std::size_t>(yolo_scratch_bytes<T>(p)) + 1);
  return yolo_delta(p, activated.data(), truth.data(), delta.data(),
                    std::span(scratch).subspan(1));  // misaligned on purpose
}

inline constexpr IouKind kIouLosses[] = {IouKind::kIou, IouKind::kGiou, IouKind::kDiou,
                                         IouKind::kCiou};

/// One anchor of three, a 3 x 2 grid, two classes; one truth of class 1 in cell (1, 0).
struct Small {
  YoloParams p;
  std::vector<float> truth;
  std::vector<double> raw;
  std::int64_t cell = 1;
  std::int64_t cells = 6;

  Small() {
    p.classes = 2;
    p.anchors = {10, 14, 30, 20, 60, 50};
    p.mask = {1};
    p.max_truths = 3;
    p.ignore_thresh = 1;
    p.net_w = 96;
    p.net_h = 64;
    p.grid_w = 3;
    p.grid_h = 2;
    truth.assign(18, 0.0F);
    set_truth(0, {0.55F, 0.3F, 0.35F, 0.3F}, 1);
    Rng rng(3, "raw");
    for (std::int64_t i = 0; i < yolo_image_size(p); ++i) raw.push_back(0.7F * rng.normal());
  }
  void set_truth(int row, std::array<float, 4> box, float class_id) {
    const auto at = static_cast<std::size_t>(row) * 6;
    std::copy(box.begin(), box.end(), truth.begin() + static_cast<std::ptrdiff_t>(at));
    truth[at + 4] = class_id;
  }
  std::vector<double> activated() const {
    std::vector<double> out(raw.size());
    yolo_activate(p, raw.data(), out.data());
    return out;
  }
  std::size_t at(int entry) const { return static_cast<std::size_t>(entry * cells + cell); }
  Box<double> box() const {
    const std::vector<double> o = activated();
    const double aw = p.anchors[2] / static_cast<double>(p.net_w);
    const double ah = p.anchors[3] / static_cast<double>(p.net_h);
    const double tw = o[at(2)], th = o[at(3)];
    return {(1 + o[at(0)]) / 3, (0 + o[at(1)]) / 2,
            p.new_coords ? 4 * tw * tw * aw : std::exp(tw) * aw,
            p.new_coords ? 4 * th * th * ah : std::exp(th) * ah};
  }
  Box<double> target() const { return {truth[0], truth[1], truth[2], truth[3]}; }
};

}  // namespace lantern::ops
