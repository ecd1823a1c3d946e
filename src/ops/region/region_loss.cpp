#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/region/region.hpp"
#include "ops/softmax/softmax_ref.hpp"
#include "ops/yolo_loss/box_iou.hpp"

namespace lantern::ops {

namespace {

constexpr int kTruthFloats = 6;
constexpr int kObjectness = 4;
constexpr int kFirstClass = 5;
constexpr float kPriorScale = 0.01F;

float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }
float logistic_slope(float y) { return (1 - y) * y; }

struct Truth {
  Box<float> box;
  int class_id = 0;      // in the truth's numbers
  int mapped_class = 0;  // in the layer's
};

class ImageLoss {
 public:
  ImageLoss(const RegionParams& params, const float* output, const float* rows, float* delta)
      : p_(params),
        out_(output),
        rows_(rows),
        delta_(delta),
        cells_(params.grid_w * params.grid_h) {}

  double run(bool anchor_prior) {
    std::fill_n(delta_, p_.image_size(), 0.0F);
    if (const std::optional<int> label = image_label()) {
      set_most_likely(*label);
    } else {
      for (std::int64_t cell = 0; cell < cells_; ++cell) {
        for (std::int64_t a = 0; a < p_.boxes(); ++a) negative(cell, a, anchor_prior);
      }
      for_each_truth([&](const Truth& truth) { positive(truth); });
    }
    double sum = 0;
    for (std::int64_t i = 0; i < p_.image_size(); ++i) {
      sum += static_cast<double>(delta_[i]) * static_cast<double>(delta_[i]);
    }
    return sum;
  }

 private:
  const float* values(std::int64_t cell, std::int64_t anchor) const {
    return out_ + (cell * p_.boxes() + anchor) * p_.entries();
  }
  float& delta(std::int64_t cell, std::int64_t anchor, std::int64_t entry) {
    return delta_[(anchor * p_.entries() + entry) * cells_ + cell];
  }
  float anchor_w(std::int64_t a) const { return p_.anchors[static_cast<std::size_t>(2 * a)]; }
  float anchor_h(std::int64_t a) const { return p_.anchors[static_cast<std::size_t>(2 * a + 1)]; }
  float grid_w() const { return static_cast<float>(p_.grid_w); }
  float grid_h() const { return static_cast<float>(p_.grid_h); }

  Box<float> predicted(std::int64_t cell, std::int64_t a) const {
    const float* v = values(cell, a);
    return {(static_cast<float>(cell % p_.grid_w) + logistic(v[0])) / grid_w(),
            (static_cast<float>(cell / p_.grid_w) + logistic(v[1])) / grid_h(),
            std::exp(v[2]) * anchor_w(a) / grid_w(), std::exp(v[3]) * anchor_h(a) / grid_h()};
  }

  template <typename Visit>
  void for_each_truth(Visit visit) const {
    const float* row = rows_;
    for (int t = 0; t < p_.max_truths; ++t, row += kTruthFloats) {
      if (row[0] == 0) break;
      if (!std::all_of(row, row + 5, [](float v) { return std::isfinite(v); })) continue;
      if (row[2] <= 0 || row[3] <= 0) continue;
      if (row[4] <= -1 || row[4] >= static_cast<float>(p_.classes)) continue;
      Truth truth{
          {row[0], row[1], row[2], row[3]}, static_cast<int>(row[4]), static_cast<int>(row[4])};
      if (!p_.class_map.empty()) {
        if (static_cast<std::size_t>(truth.class_id) >= p_.class_map.size()) continue;
        truth.mapped_class = p_.class_map[static_cast<std::size_t>(truth.class_id)];
        if (truth.mapped_class < 0 || truth.mapped_class >= p_.classes) continue;
      }
      visit(truth);
    }
  }

  // The node of the first truth that is one of the whole image. Darknet: `map` is not for these.
  std::optional<int> image_label() const {
    if (!p_.tree) return std::nullopt;
    const float* row = rows_;
    for (int t = 0; t < p_.max_truths && row[0] != 0; ++t, row += kTruthFloats) {
      const bool known = row[4] > -1 && row[4] < static_cast<float>(p_.classes);
      if (known && row[0] > kImageLabel && row[1] > kImageLabel) return static_cast<int>(row[4]);
    }
    return std::nullopt;
  }

  void set_most_likely(int class_id) {
    float best = 0;
    std::int64_t best_cell = 0;
    std::int64_t best_anchor = 0;
    for (std::int64_t cell = 0; cell < cells_; ++cell) {
      for (std::int64_t a = 0; a < p_.boxes(); ++a) {
        const float* v = values(cell, a);
        const float p = v[kObjectness] * p_.tree->probability(v + kFirstClass, class_id);
        if (!(p > best)) continue;
        best = p;
        best_cell = cell;
        best_anchor = a;
      }
    }
    set_class(best_cell, best_anchor, class_id, p_.class_scale);
  }

  void negative(std::int64_t cell, std::int64_t a, bool anchor_prior) {
    const Box<float> box = predicted(cell, a);
    float best_iou = 0;
    int best_class = -1;
    for_each_truth([&](const Truth& truth) {
      const float iou = box_iou(box, truth.box);
      if (iou > best_iou) {
        best_iou = iou;
        best_class = truth.class_id;
      }
    });
    const float p = values(cell, a)[kObjectness];
    float& d = delta(cell, a, kObjectness);
    d = p_.noobject_scale * (0 - p) * logistic_slope(p);
    if (p_.classfix == -1) {
      d = p_.noobject_scale * (best_iou - p) * logistic_slope(p);
    } else if (best_iou > p_.thresh) {
      d = 0;
      if (p_.classfix > 0 && best_class >= 0) {
        set_class(cell, a, best_class, p_.class_scale * (p_.classfix == 2 ? p : 1.0F));
      }
    }
    if (anchor_prior) {
      const Box<float> prior{(static_cast<float>(cell % p_.grid_w) + 0.5F) / grid_w(),
                             (static_cast<float>(cell / p_.grid_w) + 0.5F) / grid_h(),
                             anchor_w(a) / grid_w(), anchor_h(a) / grid_h()};
      set_box(cell, a, prior, kPriorScale);
    }
  }

  // Set, not added: a truth replaces the prior and an earlier truth of the same place.
  void set_box(std::int64_t cell, std::int64_t a, const Box<float>& target, float scale) {
    const float* v = values(cell, a);
    const float x = logistic(v[0]);
    const float y = logistic(v[1]);
    delta(cell, a, 0) = scale * (target.x * grid_w() - static_cast<float>(cell % p_.grid_w) - x) *
                        logistic_slope(x);
    delta(cell, a, 1) = scale * (target.y * grid_h() - static_cast<float>(cell / p_.grid_w) - y) *
                        logistic_slope(y);
    delta(cell, a, 2) = scale * (std::log(target.w * grid_w() / anchor_w(a)) - v[2]);
    delta(cell, a, 3) = scale * (std::log(target.h * grid_h() / anchor_h(a)) - v[3]);
  }

  void set_class(std::int64_t cell, std::int64_t a, int class_id, float scale) {
    const float* p = values(cell, a) + kFirstClass;
    if (p_.tree) {
      set_node(cell, a, class_id, scale);
      return;
    }
    float factor = scale;
    if (p_.focal_loss) {
      const float pt = p[class_id] + 1e-15F;
      factor *= 0.5F * -(1 - pt) * (2 * pt * std::log(pt) + pt - 1);
    }
    for (int k = 0; k < p_.classes; ++k) {
      delta(cell, a, kFirstClass + k) = factor * ((k == class_id ? 1.0F : 0.0F) - p[k]);
    }
  }

  // The node and each of its ancestors, against their siblings.
  void set_node(std::int64_t cell, std::int64_t a, int node, float scale) {
    const WordTree& tree = *p_.tree;
    const float* p = values(cell, a) + kFirstClass;
    for (; node >= 0; node = tree.parents[static_cast<std::size_t>(node)]) {
      const auto group = static_cast<std::size_t>(tree.group_of[static_cast<std::size_t>(node)]);
      const WordTree::Group& siblings = tree.groups[group];
      for (std::int64_t k = siblings.first; k < siblings.first + siblings.count; ++k) {
        delta(cell, a, kFirstClass + k) = scale * ((k == node ? 1.0F : 0.0F) - p[k]);
      }
    }
  }

  void positive(const Truth& truth) {
    const auto cell_of = [](float centre, std::int64_t extent) {
      const float at = centre * static_cast<float>(extent);
      if (!(at > 0)) return std::int64_t{0};
      return at >= static_cast<float>(extent) ? extent - 1 : static_cast<std::int64_t>(at);
    };
    const std::int64_t cell =
        cell_of(truth.box.y, p_.grid_h) * p_.grid_w + cell_of(truth.box.x, p_.grid_w);
    const Box<float> centred{0, 0, truth.box.w, truth.box.h};
    std::int64_t best = 0;
    float best_iou = 0;
    for (std::int64_t a = 0; a < p_.boxes(); ++a) {
      Box<float> shape{0, 0, anchor_w(a) / grid_w(), anchor_h(a) / grid_h()};
      if (!p_.bias_match) {
        const Box<float> box = predicted(cell, a);
        shape.w = box.w;
        shape.h = box.h;
      }
      const float iou = box_iou(shape, centred);
      if (iou > best_iou) {
        best_iou = iou;
        best = a;
      }
    }
    const float iou = box_iou(predicted(cell, best), truth.box);
    set_box(cell, best, truth.box, p_.coord_scale);
    const float p = values(cell, best)[kObjectness];
    delta(cell, best, kObjectness) =
        p_.object_scale * ((p_.rescore ? iou : 1.0F) - p) * logistic_slope(p);
    set_class(cell, best, truth.mapped_class, p_.class_scale);
  }

  const RegionParams& p_;
  const float* out_;
  const float* rows_;
  float* delta_;
  std::int64_t cells_;
};

}  // namespace

void region_activate(const RegionParams& params, const float* raw, float* output) {
  const std::int64_t cells = params.grid_w * params.grid_h;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    for (std::int64_t a = 0; a < params.boxes(); ++a) {
      const float* in = raw + a * params.entries() * cells + cell;
      float* out = output + (cell * params.boxes() + a) * params.entries();
      for (std::int64_t e = 0; e < params.entries(); ++e) out[e] = in[e * cells];
      out[kObjectness] = logistic(out[kObjectness]);
      float* classes = out + kFirstClass;
      if (params.tree) {
        for (const WordTree::Group& group : params.tree->groups) {
          ref::softmax_one(classes + group.first, classes + group.first, group.count, 1, 1.0F);
        }
      } else if (params.softmax) {
        ref::softmax_one(classes, classes, params.classes, 1, 1.0F);
      }
    }
  }
}

double region_delta(const RegionParams& params, const float* output, const float* truth_rows,
                    bool anchor_prior, float* delta) {
  return ImageLoss(params, output, truth_rows, delta).run(anchor_prior);
}

}  // namespace lantern::ops
