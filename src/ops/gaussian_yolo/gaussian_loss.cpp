#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/yolo_loss/box_iou.hpp"

namespace lantern::ops {

namespace {

constexpr int kTruthFloats = 6;
constexpr int kObjectness = 8;
constexpr int kFirstClass = 9;
constexpr float kClassMatch = 0.25F;  // a cell may be ignored only if some class exceeds this
constexpr float kSigmaFloor = 0.3F;   // added to a deviation before dividing by it
constexpr float kDensityFloor = 1e-9F;

float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }

struct Truth {
  Box<float> box;
  int class_id = 0;
  float multiplier = 1;
};

class ImageLoss {
 public:
  ImageLoss(const GaussianParams& params, const float* output, const float* rows, float* delta)
      : g_(params),
        p_(params.yolo),
        out_(output),
        rows_(rows),
        delta_(delta),
        cells_(p_.grid_w * p_.grid_h) {
    for (const int count : p_.counters_per_class)
      highest_counter_ = std::max(highest_counter_, count);
  }

  double run() {
    std::fill_n(delta_, g_.image_size(), 0.0F);
    for (int a = 0; a < p_.anchors_per_cell(); ++a) {
      for (std::int64_t cell = 0; cell < cells_; ++cell) negative(a, cell);
    }
    for_each_truth([&](const Truth& truth) { assign(truth); });
    average_boxes();
    double sum = 0;
    for (std::int64_t i = 0; i < g_.image_size(); ++i) {
      sum += static_cast<double>(delta_[i]) * static_cast<double>(delta_[i]);
    }
    return sum;
  }

 private:
  std::int64_t at(int anchor, int entry, std::int64_t cell) const {
    return (anchor * g_.entries() + entry) * cells_ + cell;
  }
  float value(int anchor, int entry, std::int64_t cell) const {
    return out_[at(anchor, entry, cell)];
  }
  float& delta(int anchor, int entry, std::int64_t cell) { return delta_[at(anchor, entry, cell)]; }
  int mask(int anchor) const { return p_.mask[static_cast<std::size_t>(anchor)]; }
  int anchor_of(int index) const {
    const auto found = std::find(p_.mask.begin(), p_.mask.end(), index);
    return found == p_.mask.end() ? -1 : static_cast<int>(found - p_.mask.begin());
  }
  float anchor_w(int index) const {
    return p_.anchors[2 * static_cast<std::size_t>(index)] / static_cast<float>(p_.net_w);
  }
  float anchor_h(int index) const {
    return p_.anchors[2 * static_cast<std::size_t>(index) + 1] / static_cast<float>(p_.net_h);
  }
  float column(std::int64_t cell) const { return static_cast<float>(cell % p_.grid_w); }
  float row(std::int64_t cell) const { return static_cast<float>(cell / p_.grid_w); }
  // Shift from the centre of a box to the point that x and y predict, in halves of its size.
  float side() const {
    return g_.point == GaussianParams::Point::kCenter    ? 0.0F
           : g_.point == GaussianParams::Point::kLeftTop ? -1.0F
                                                         : 1.0F;
  }

  Box<float> predicted(int anchor, std::int64_t cell) const {
    const float w = std::exp(value(anchor, 4, cell)) * anchor_w(mask(anchor));
    const float h = std::exp(value(anchor, 6, cell)) * anchor_h(mask(anchor));
    const float x = (column(cell) + value(anchor, 0, cell)) / static_cast<float>(p_.grid_w);
    const float y = (row(cell) + value(anchor, 2, cell)) / static_cast<float>(p_.grid_h);
    return {x - side() * w / 2, y - side() * h / 2, w, h};
  }

  float multiplier(int class_id) const {
    const auto& counters = p_.counters_per_class;
    if (static_cast<std::size_t>(class_id) >= counters.size()) return 1;
    const int counter = std::max(1, counters[static_cast<std::size_t>(class_id)]);
    return std::min(static_cast<float>(highest_counter_) / static_cast<float>(counter),
                    p_.max_delta);
  }

  template <typename Visit>
  void for_each_truth(Visit visit) const {
    const float* r = rows_;
    for (int t = 0; t < p_.max_truths; ++t, r += kTruthFloats) {
      if (r[0] == 0) break;
      if (!std::all_of(r, r + 5, [](float v) { return std::isfinite(v); })) continue;
      if (r[2] <= 0 || r[3] <= 0) continue;
      if (r[4] <= -1 || r[4] >= static_cast<float>(p_.classes)) continue;
      int class_id = static_cast<int>(r[4]);
      if (!p_.class_map.empty()) {
        if (static_cast<std::size_t>(class_id) >= p_.class_map.size()) continue;
        class_id = p_.class_map[static_cast<std::size_t>(class_id)];
        if (class_id < 0 || class_id >= p_.classes) continue;
      }
      visit(Truth{{r[0], r[1], r[2], r[3]}, class_id, multiplier(class_id)});
    }
  }

  void negative(int anchor, std::int64_t cell) {
    const Box<float> box = predicted(anchor, cell);
    bool class_above = false;
    for (int k = 0; k < p_.classes && !class_above; ++k) {
      class_above = value(anchor, kFirstClass + k, cell) > kClassMatch;
    }
    Truth best;
    float best_iou = 0;
    for_each_truth([&](const Truth& truth) {
      const float iou = box_iou(box, truth.box);
      if (iou > best_iou) {
        best_iou = iou;
        best = truth;
      }
    });
    const float p = value(anchor, kObjectness, cell);
    float& d = delta(anchor, kObjectness, cell);
    d = p_.obj_normalizer * (0 - p);
    if (class_above && best_iou > p_.ignore_thresh) {
      d = 0;
      if (p_.objectness_smooth) {
        d = p_.obj_normalizer * (best_iou * best_iou - p);
        set_class(anchor, cell, best);
      }
    }
    if (best_iou > p_.truth_thresh) {
      const float target = p_.objectness_smooth ? best_iou * best_iou : 1.0F;
      d = p_.obj_normalizer * (target - p);
      set_class(anchor, cell, best);
      if (p_.objectness_smooth) {
        const int entry = kFirstClass + best.class_id;
        delta(anchor, entry, cell) =
            best.multiplier * (target - value(anchor, entry, cell)) * every_class_factor();
      }
      add_box(anchor, cell, best);
    }
  }

  void assign(const Truth& truth) {
    const auto cell_of = [](float point, std::int64_t extent) {
      const float place = point * static_cast<float>(extent);
      if (!(place > 0)) return std::int64_t{0};
      return place >= static_cast<float>(extent) ? extent - 1 : static_cast<std::int64_t>(place);
    };
    const std::int64_t cell =
        cell_of(truth.box.y + side() * truth.box.h / 2, p_.grid_h) * p_.grid_w +
        cell_of(truth.box.x + side() * truth.box.w / 2, p_.grid_w);
    const Box<float> centred{0, 0, truth.box.w, truth.box.h};
    int best = 0;
    float best_iou = 0;
    for (int k = 0; k < p_.total_anchors(); ++k) {
      const float iou = box_iou(Box<float>{0, 0, anchor_w(k), anchor_h(k)}, centred);
      if (iou > best_iou) {
        best_iou = iou;
        best = k;
      }
    }
    for (int k = 0; k < p_.total_anchors(); ++k) {
      const int anchor = anchor_of(k);
      if (anchor < 0 || k != best) continue;
      positive(anchor, cell, truth);
    }
    if (p_.iou_thresh >= 1) return;
    for (int k = 0; k < p_.total_anchors(); ++k) {
      const int anchor = k == best ? -1 : anchor_of(k);
      if (anchor < 0) continue;
      const Box<float> shape{0, 0, anchor_w(k), anchor_h(k)};
      if (box_iou(p_.iou_thresh_kind, shape, centred) > p_.iou_thresh)
        positive(anchor, cell, truth);
    }
  }

  void positive(int anchor, std::int64_t cell, const Truth& truth) {
    add_box(anchor, cell, truth);
    delta(anchor, kObjectness, cell) =
        truth.multiplier * p_.obj_normalizer * (1 - value(anchor, kObjectness, cell));
    set_class(anchor, cell, truth);
  }

  float every_class_factor() const { return p_.cls_normalizer_all ? p_.cls_normalizer : 1.0F; }

  // "Already set" is read off class 0, whatever the class of the truth: the reference's rule.
  void set_class(int anchor, std::int64_t cell, const Truth& truth) {
    const float smooth = p_.label_smooth_eps;
    const bool counted = !p_.counters_per_class.empty();
    const int own = kFirstClass + truth.class_id;
    if (delta(anchor, kFirstClass, cell) != 0) {
      const float label = 1 - smooth + smooth / 2;
      delta(anchor, own, cell) =
          (label - value(anchor, own, cell)) * truth.multiplier * every_class_factor();
      return;
    }
    for (int k = 0; k < p_.classes; ++k) {
      const float label = (k == truth.class_id ? 1 - smooth : 0.0F) + smooth / 2;
      delta(anchor, kFirstClass + k, cell) =
          (label - value(anchor, kFirstClass + k, cell)) * every_class_factor();
    }
    if (counted) {
      delta(anchor, own, cell) *=
          truth.multiplier * (p_.cls_normalizer_all ? 1.0F : p_.cls_normalizer);
    }
  }

  void add_box(int anchor, std::int64_t cell, const Truth& truth) {
    const Box<float>& t = truth.box;
    const float scale = 2 - t.w * t.h;
    const std::array<float, 4> targets{
        (t.x + side() * t.w / 2) * static_cast<float>(p_.grid_w) - column(cell),
        (t.y + side() * t.h / 2) * static_cast<float>(p_.grid_h) - row(cell),
        std::log(t.w / anchor_w(mask(anchor))), std::log(t.h / anchor_h(mask(anchor)))};
    std::array<float, 4> coordinate{};
    std::array<float, 4> deviation{};
    for (int c = 0; c < 4; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const float d = targets[i] - value(anchor, 2 * c, cell);
      const float sigma = value(anchor, 2 * c + 1, cell);
      const float ratio = d / sigma;
      const float density = std::exp(-ratio * ratio / 2) /
                            (std::sqrt(2 * std::numbers::pi_v<float>) * (sigma + kSigmaFloor));
      const float weight = scale / 2 * density / (density + kDensityFloor);
      coordinate[i] = weight * ratio / sigma;
      deviation[i] = weight * (ratio * ratio / sigma - 1 / (sigma + kSigmaFloor));
    }
    if (p_.iou_loss != IouKind::kMse) {
      Box<float> box = predicted(anchor, cell);
      if (box.w == 0) box.w = 1;
      if (box.h == 0) box.h = 1;
      const BoxVector<float> g = reference_iou_gradient(p_.iou_loss, box, t);
      coordinate = {g.x + side() * g.w / 2, g.y + side() * g.h / 2,
                    g.w * std::exp(value(anchor, 4, cell)), g.h * std::exp(value(anchor, 6, cell))};
    }
    const float norm = p_.iou_normalizer * truth.multiplier;
    const auto bounded = [&](float v) {
      return std::isfinite(v) ? std::clamp(v, -p_.max_delta, p_.max_delta) : 0.0F;
    };
    for (int c = 0; c < 4; ++c) {
      const auto i = static_cast<std::size_t>(c);
      delta(anchor, 2 * c, cell) += bounded(norm * coordinate[i]);
      delta(anchor, 2 * c + 1, cell) += bounded(g_.uc_normalizer * deviation[i]);
    }
  }

  // Divides by the number of positive classes, wherever there is one: the reference's rule.
  void average_boxes() {
    for (int a = 0; a < p_.anchors_per_cell(); ++a) {
      for (std::int64_t cell = 0; cell < cells_; ++cell) {
        int positive_classes = 0;
        for (int k = 0; k < p_.classes; ++k) {
          positive_classes += delta(a, kFirstClass + k, cell) > 0 ? 1 : 0;
        }
        if (positive_classes < 2) continue;
        for (int e = 0; e < kObjectness; ++e)
          delta(a, e, cell) /= static_cast<float>(positive_classes);
      }
    }
  }

  const GaussianParams& g_;
  const YoloParams& p_;
  const float* out_;
  const float* rows_;
  float* delta_;
  std::int64_t cells_;
  int highest_counter_ = 1;
};

}  // namespace

void gaussian_activate(const GaussianParams& params, const float* raw, float* activated) {
  const YoloParams& p = params.yolo;
  const std::int64_t cells = p.grid_w * p.grid_h;
  for (int a = 0; a < p.anchors_per_cell(); ++a) {
    for (std::int64_t e = 0; e < params.entries(); ++e) {
      const std::int64_t first = (a * params.entries() + e) * cells;
      const bool size = e == 4 || e == 6;
      const bool place = e == 0 || e == 2;
      for (std::int64_t i = first; i < first + cells; ++i) {
        float v = size ? raw[i] : logistic(raw[i]);
        if (place) v = v * p.scale_x_y - 0.5F * (p.scale_x_y - 1);
        activated[i] = v;
      }
    }
  }
}

double gaussian_delta(const GaussianParams& params, const float* activated, const float* truth_rows,
                      float* delta) {
  return ImageLoss(params, activated, truth_rows, delta).run();
}

}  // namespace lantern::ops
