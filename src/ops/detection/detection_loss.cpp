#include <algorithm>
#include <cmath>

#include "core/rng.hpp"
#include "ops/detection/detection.hpp"
#include "ops/softmax/softmax_ref.hpp"
#include "ops/yolo_loss/box_iou.hpp"

namespace lantern::ops {

namespace {

constexpr int kTruthFloats = 6;
constexpr float kSmallArea = 0.1F;  // `forced` gives smaller boxes to the second place of a cell

struct Truth {
  std::int64_t cell = 0;
  int class_id = 0;
  Box<float> box;  // x, y: offset within the cell, in cells; w, h: relative to the image
};

float distance(const Box<float>& a, const Box<float>& b) {
  const float squares = (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) +
                        (a.w - b.w) * (a.w - b.w) + (a.h - b.h) * (a.h - b.h);
  return std::sqrt(squares);
}

class ImageLoss {
 public:
  ImageLoss(const DetectionParams& params, const float* output, const float* rows, float* delta)
      : p_(params), out_(output), rows_(rows), delta_(delta) {}

  double run(const DetectionDraw* draw) {
    std::fill_n(delta_, p_.image_size(), 0.0F);
    for (std::int64_t i = p_.objectness(0, 0); i < p_.coordinates(0, 0); ++i) {
      delta_[i] = p_.noobject_scale * (0 - out_[i]);
    }
    for (int t = 0; t < p_.max_truths && rows_[t * kTruthFloats] != 0; ++t) {
      Truth truth;
      if (read(rows_ + t * kTruthFloats, truth) && !is_taken(truth.cell, t)) positive(truth, draw);
    }
    double sum = 0;
    for (std::int64_t i = 0; i < p_.image_size(); ++i) {
      sum += static_cast<double>(delta_[i]) * static_cast<double>(delta_[i]);
    }
    return sum;
  }

 private:
  bool read(const float* row, Truth& truth) const {
    if (!std::all_of(row, row + 5, [](float v) { return std::isfinite(v); })) return false;
    if (row[2] <= 0 || row[3] <= 0) return false;
    if (row[4] <= -1 || row[4] >= static_cast<float>(p_.classes)) return false;
    const auto place = [&](float centre, float& offset) {
      const float at = std::clamp(centre, 0.0F, 1.0F) * static_cast<float>(p_.side);
      const std::int64_t index = std::min(static_cast<std::int64_t>(at), p_.side - 1);
      offset = at - static_cast<float>(index);
      return index;
    };
    truth.box = {0, 0, row[2], row[3]};
    truth.cell = place(row[1], truth.box.y) * p_.side;
    truth.cell += place(row[0], truth.box.x);
    truth.class_id = static_cast<int>(row[4]);
    return true;
  }

  // Whether an earlier row is the truth of the cell.
  bool is_taken(std::int64_t cell, int row) const {
    Truth earlier;
    for (int t = 0; t < row; ++t) {
      if (read(rows_ + t * kTruthFloats, earlier) && earlier.cell == cell) return true;
    }
    return false;
  }

  // Centres in cells become shares of the image, as the sizes are.
  Box<float> scaled(Box<float> box) const {
    box.x /= static_cast<float>(p_.side);
    box.y /= static_cast<float>(p_.side);
    return box;
  }
  Box<float> predicted(std::int64_t cell, std::int64_t b) const {
    const float* v = out_ + p_.coordinates(cell, b);
    Box<float> box{v[0], v[1], v[2], v[3]};
    if (p_.sqrt) {
      box.w *= box.w;
      box.h *= box.h;
    }
    return scaled(box);
  }

  // The box of the cell that overlaps the truth most, or where none does, the nearest one.
  std::int64_t choose_box(const Truth& truth, const DetectionDraw* draw) const {
    if (draw != nullptr) {
      constexpr std::uint64_t kLayerStep = 0x9e3779b97f4a7c15ULL;
      Rng rng(draw->seed + kLayerStep * static_cast<std::uint64_t>(p_.layer + 1) +
                  static_cast<std::uint64_t>(truth.cell),
              "detection", draw->iteration, draw->image);
      return rng.uniform_int(0, p_.boxes - 1);
    }
    if (p_.forced) return truth.box.w * truth.box.h < kSmallArea && p_.boxes > 1 ? 1 : 0;
    const Box<float> target = scaled(truth.box);
    std::int64_t best = 0;
    float best_iou = 0;
    float least = 20;  // larger than any distance of boxes that a trained network gives
    for (std::int64_t b = 0; b < p_.boxes; ++b) {
      const Box<float> box = predicted(truth.cell, b);
      const float iou = box_iou(box, target);
      if (best_iou > 0 || iou > 0) {
        if (iou > best_iou) {
          best_iou = iou;
          best = b;
        }
      } else if (distance(box, target) < least) {
        least = distance(box, target);
        best = b;
      }
    }
    return best;
  }

  void positive(const Truth& truth, const DetectionDraw* draw) {
    const std::int64_t classes = truth.cell * p_.classes;
    for (int k = 0; k < p_.classes; ++k) {
      delta_[classes + k] =
          p_.class_scale * ((k == truth.class_id ? 1.0F : 0.0F) - out_[classes + k]);
    }
    const std::int64_t best = choose_box(truth, draw);
    const std::int64_t objectness = p_.objectness(truth.cell, best);
    const float target =
        p_.rescore ? box_iou(predicted(truth.cell, best), scaled(truth.box)) : 1.0F;
    delta_[objectness] = p_.object_scale * (target - out_[objectness]);
    const std::int64_t box = p_.coordinates(truth.cell, best);
    const float w = p_.sqrt ? std::sqrt(truth.box.w) : truth.box.w;
    const float h = p_.sqrt ? std::sqrt(truth.box.h) : truth.box.h;
    delta_[box] = p_.coord_scale * (truth.box.x - out_[box]);
    delta_[box + 1] = p_.coord_scale * (truth.box.y - out_[box + 1]);
    delta_[box + 2] = p_.coord_scale * (w - out_[box + 2]);
    delta_[box + 3] = p_.coord_scale * (h - out_[box + 3]);
  }

  const DetectionParams& p_;
  const float* out_;
  const float* rows_;
  float* delta_;
};

}  // namespace

void detection_activate(const DetectionParams& params, const float* raw, float* output) {
  std::copy_n(raw, params.image_size(), output);
  if (!params.softmax) return;
  for (std::int64_t cell = 0; cell < params.cells(); ++cell) {
    float* classes = output + cell * params.classes;
    ref::softmax_one(classes, classes, params.classes, 1, 1.0F);
  }
}

double detection_delta(const DetectionParams& params, const float* output, const float* truth_rows,
                       const DetectionDraw* draw, float* delta) {
  return ImageLoss(params, output, truth_rows, delta).run(draw);
}

}  // namespace lantern::ops
