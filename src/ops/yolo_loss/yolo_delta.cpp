#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/error.hpp"
#include "ops/yolo_loss/exp_approx.hpp"
#include "ops/yolo_loss/yolo_view.hpp"

namespace lantern::ops {
namespace {

using yolo_detail::add_box_delta;
using yolo_detail::all_classes_factor;
using yolo_detail::class_of_row;
using yolo_detail::ImageView;
using yolo_detail::place_of;
using yolo_detail::set_class_delta;
using yolo_detail::Truth;

constexpr int kTruthFloats = 6;
constexpr float kClassMatch = 0.25F;  // a cell may be ignored only if some class exceeds this
constexpr std::size_t kAlign = 64;

/// Predictions of one row of cells, as edges.
template <typename T>
struct Row {
  T *left, *right, *top, *bottom, *area, *best;
  std::int32_t* best_truth;
};

template <typename T>
struct Scratch {
  std::span<Truth<T>> truths;
  Row<T> row;
  std::span<std::uint8_t> touched;  // [anchor][cell]: has box and class deltas
};

/// Cuts the scratch into its parts; with `base` null only the size counts.
template <typename T>
std::size_t lay_out(const YoloParams& p, std::byte* base, Scratch<T>& out) {
  std::size_t used = 0;
  const auto take = [&]<typename U>(std::int64_t count, U*) {
    U* at = base == nullptr ? nullptr : reinterpret_cast<U*>(base + used);
    used += static_cast<std::size_t>(
        round_up(count * static_cast<std::int64_t>(sizeof(U)), static_cast<std::int64_t>(kAlign)));
    return at;
  };
  const std::int64_t width = p.grid_w;
  const auto rows = static_cast<std::size_t>(std::max(0, p.max_truths));
  const std::int64_t cells = p.grid_w * p.grid_h * p.anchors_per_cell();
  Truth<T>* truths = take(std::max(0, p.max_truths), static_cast<Truth<T>*>(nullptr));
  const auto line = [&] { return take(width, static_cast<T*>(nullptr)); };
  out.row = {.left = line(),
             .right = line(),
             .top = line(),
             .bottom = line(),
             .area = line(),
             .best = line(),
             .best_truth = take(width, static_cast<std::int32_t*>(nullptr))};
  std::uint8_t* touched = take(cells, static_cast<std::uint8_t*>(nullptr));
  if (base != nullptr) {
    out.truths = {truths, rows};
    out.touched = {touched, static_cast<std::size_t>(cells)};
  }
  return used;
}

template <typename T>
class ImageLoss {
 public:
  ImageLoss(const YoloParams& params, const T* out, T* delta, Scratch<T> scratch)
      : p_(params), view_{params, out, delta}, delta_(delta), scratch_(scratch) {
    if (!p_.counters_per_class.empty()) {
      highest_counter_ = std::max(
          1, *std::max_element(p_.counters_per_class.begin(), p_.counters_per_class.end()));
    }
  }

  YoloImageStats run(const float* truth_rows) {
    std::fill_n(delta_, yolo_image_size(p_), T(0));
    std::fill(scratch_.touched.begin(), scratch_.touched.end(), std::uint8_t{0});
    read_truths(truth_rows);
    for (int a = 0; a < p_.anchors_per_cell(); ++a) {
      if (truth_count_ == 0) {
        negatives_only(a);
      } else {
        for (std::int64_t row = 0; row < p_.grid_h; ++row) negatives(a, row);
      }
    }
    for (std::size_t t = 0; t < truth_count_; ++t) assign(scratch_.truths[t]);
    if (p_.iou_thresh < 1) average_boxes();
    sum_squares();
    return stats_;
  }

 private:
  T multiplier(int class_id) const {
    const auto& counters = p_.counters_per_class;
    if (static_cast<std::size_t>(class_id) >= counters.size()) return T(1);
    const int counter = std::max(1, counters[static_cast<std::size_t>(class_id)]);
    return std::min(static_cast<T>(highest_counter_) / static_cast<T>(counter),
                    static_cast<T>(p_.max_delta));
  }

  void read_truths(const float* rows) {
    truth_count_ = 0;
    for (int t = 0; t < p_.max_truths; ++t, rows += kTruthFloats) {
      if (rows[0] == 0) break;
      const std::optional<int> row_class = class_of_row(p_, rows);
      if (!row_class) continue;
      const int class_id = *row_class;
      const Box<T> box{static_cast<T>(rows[0]), static_cast<T>(rows[1]), static_cast<T>(rows[2]),
                       static_cast<T>(rows[3])};
      scratch_.truths[truth_count_++] = {box.x - box.w / 2, box.x + box.w / 2,   box.y - box.h / 2,
                                         box.y + box.h / 2, box.w * box.h,       box,
                                         class_id,          multiplier(class_id)};
    }
  }

  // ---- step 1 -------------------------------------------------------------------------------

  // An image without a valid truth: every cell is a negative.
  void negatives_only(int anchor) {
    const T* p = view_.out + view_.plane(anchor, 4);
    T* d = delta_ + view_.plane(anchor, 4);
    const T norm = static_cast<T>(p_.obj_normalizer);
    for (std::int64_t i = 0; i < view_.cells; ++i) d[i] = norm * (0 - p[i]);
    for (std::int64_t i = 0; i < view_.cells; ++i)
      stats_.objectness_all += static_cast<double>(p[i]);
    stats_.cells += view_.cells;
  }

  // Edges of the row's predicted boxes, their vertical range, and best = 0.
  void decode_row(int anchor, std::int64_t row, T& top_most, T& bottom_most) {
    const Row<T>& r = scratch_.row;
    const std::int64_t width = p_.grid_w;
    const T* o = view_.out + view_.plane(anchor, 0) + row * width;
    const T *px = o, *py = o + view_.cells, *pw = o + 2 * view_.cells, *ph = o + 3 * view_.cells;
    const T aw = view_.anchor_w(view_.mask(anchor));
    const T ah = view_.anchor_h(view_.mask(anchor));
    const T grid_w = static_cast<T>(width);
    const T grid_h = static_cast<T>(p_.grid_h);
    const T row_t = static_cast<T>(row);
    const bool squared = p_.new_coords;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < width; ++i) {
      r.right[i] = squared ? 4 * pw[i] * pw[i] : exp_approx(pw[i]);
      r.bottom[i] = squared ? 4 * ph[i] * ph[i] : exp_approx(ph[i]);
    }
#pragma GCC ivdep
    for (std::int64_t i = 0; i < width; ++i) {
      const T x = (static_cast<T>(static_cast<std::int32_t>(i)) + px[i]) / grid_w;
      const T y = (row_t + py[i]) / grid_h;
      const T w = r.right[i] * aw;
      const T h = r.bottom[i] * ah;
      r.left[i] = x - w / 2;
      r.right[i] = x + w / 2;
      r.top[i] = y - h / 2;
      r.bottom[i] = y + h / 2;
      r.area[i] = w * h;
      r.best[i] = 0;
      r.best_truth[i] = 0;
    }
    top_most = std::numeric_limits<T>::max();
    bottom_most = std::numeric_limits<T>::lowest();
    for (std::int64_t i = 0; i < width; ++i) {
      top_most = r.top[i] < top_most ? r.top[i] : top_most;
      bottom_most = r.bottom[i] > bottom_most ? r.bottom[i] : bottom_most;
    }
  }

  // Highest IoU of every cell of the row, and with truth_thresh in force the truth it belongs to.
  void match_row(T top_most, T bottom_most) {
    const Row<T>& r = scratch_.row;
    const std::int64_t width = p_.grid_w;
    const bool want_truth = p_.truth_thresh < 1;
    for (std::size_t t = 0; t < truth_count_; ++t) {
      const Truth<T> truth = scratch_.truths[t];
      if (truth.bottom <= top_most || truth.top >= bottom_most) continue;
      const auto index = static_cast<std::int32_t>(t);
      const auto iou_at = [&](std::int64_t i) {
        const T right = r.right[i] < truth.right ? r.right[i] : truth.right;
        const T left = r.left[i] > truth.left ? r.left[i] : truth.left;
        const T bottom = r.bottom[i] < truth.bottom ? r.bottom[i] : truth.bottom;
        const T top = r.top[i] > truth.top ? r.top[i] : truth.top;
        const T w = right - left > 0 ? right - left : T(0);
        const T h = bottom - top > 0 ? bottom - top : T(0);
        const T intersection = w * h;
        return intersection / (r.area[i] + truth.area - intersection);
      };
      if (want_truth) {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < width; ++i) {
          const T iou = iou_at(i);
          r.best_truth[i] = iou > r.best[i] ? index : r.best_truth[i];
          r.best[i] = iou > r.best[i] ? iou : r.best[i];
        }
      } else {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < width; ++i) {
          const T iou = iou_at(i);
          r.best[i] = iou > r.best[i] ? iou : r.best[i];
        }
      }
    }
  }

  bool any_class_above(int anchor, std::int64_t cell, T limit) const {
    const T* c = view_.out + view_.plane(anchor, 5) + cell;
    for (int k = 0; k < p_.classes; ++k, c += view_.cells) {
      if (*c > limit) return true;
    }
    return false;
  }

  void negatives(int anchor, std::int64_t row) {
    T top_most, bottom_most;
    decode_row(anchor, row, top_most, bottom_most);
    match_row(top_most, bottom_most);
    const T norm = static_cast<T>(p_.obj_normalizer);
    const T ignore = static_cast<T>(p_.ignore_thresh);
    const T* best = scratch_.row.best;
    T* d = delta_ + view_.plane(anchor, 4);
    for (std::int64_t i = 0; i < p_.grid_w; ++i) {
      const std::int64_t cell = row * p_.grid_w + i;
      const T p = view_.objectness(anchor, cell);
      stats_.objectness_all += static_cast<double>(p);
      d[cell] = norm * (0 - p);
      // The best match is the best IoU, or 0 where no class is confident.
      const T match = best[i] > ignore && any_class_above(anchor, cell, kClassMatch) ? best[i] : 0;
      if (match > ignore) {
        d[cell] = p_.objectness_smooth ? std::max(d[cell], norm * (match - p)) : T(0);
      }
      if (p_.truth_thresh < 1 && best[i] > static_cast<T>(p_.truth_thresh)) {
        const auto index = static_cast<std::size_t>(scratch_.row.best_truth[i]);
        second_positive(anchor, cell, best[i], scratch_.truths[index]);
      }
    }
    stats_.cells += p_.grid_w;
  }

  // Rule 4 of step 1: a prediction that overlaps a truth by more than truth_thresh.
  void second_positive(int anchor, std::int64_t cell, T best, const Truth<T>& truth) {
    const T norm = static_cast<T>(p_.obj_normalizer);
    const T target = p_.objectness_smooth ? best * best : T(1);
    delta_[view_.plane(anchor, 4) + cell] = norm * (target - view_.objectness(anchor, cell));
    set_class_delta(view_, anchor, cell, truth);
    if (p_.objectness_smooth) {
      const std::int64_t at = view_.plane(anchor, 5 + truth.class_id) + cell;
      delta_[at] = truth.multiplier * (target - view_.out[at]) * all_classes_factor<T>(p_);
    }
    box_delta(anchor, cell, truth);
  }

  // ---- step 2 -------------------------------------------------------------------------------

  void assign(const Truth<T>& truth) {
    const auto [best, cell] = place_of(view_, truth.box);
    const Box<T> centred{0, 0, truth.box.w, truth.box.h};
    if (const int anchor = view_.anchor_of(best); anchor >= 0) positive(anchor, cell, truth);
    if (p_.iou_thresh >= 1) return;
    for (int k = 0; k < p_.total_anchors(); ++k) {
      const int anchor = k == best ? -1 : view_.anchor_of(k);
      if (anchor < 0) continue;
      const Box<T> shape{0, 0, view_.anchor_w(k), view_.anchor_h(k)};
      if (box_iou(p_.iou_thresh_kind, shape, centred) > static_cast<T>(p_.iou_thresh)) {
        positive(anchor, cell, truth);
      }
    }
  }

  void positive(int anchor, std::int64_t cell, const Truth<T>& truth) {
    const Box<T> box = view_.predicted(anchor, cell);
    const T iou = box_iou(box, truth.box);
    stats_.iou += static_cast<double>(iou);
    if (p_.iou_loss == IouKind::kGiou) {
      stats_.giou += static_cast<double>(box_iou(IouKind::kGiou, box, truth.box));
    }
    box_delta(anchor, cell, truth);
    const T p = view_.objectness(anchor, cell);
    T& d = delta_[view_.plane(anchor, 4) + cell];
    if (!p_.objectness_smooth || d == 0) {
      d = truth.multiplier * static_cast<T>(p_.obj_normalizer) * (1 - p);
    }
    stats_.class_probability +=
        static_cast<double>(view_.out[view_.plane(anchor, 5 + truth.class_id) + cell]);
    set_class_delta(view_, anchor, cell, truth);
    stats_.objectness_positive += static_cast<double>(p);
    ++stats_.count;
    stats_.recall50 += iou > T(0.5) ? 1 : 0;
    stats_.recall75 += iou > T(0.75) ? 1 : 0;
  }

  void box_delta(int anchor, std::int64_t cell, const Truth<T>& truth) {
    scratch_.touched[static_cast<std::size_t>(anchor * view_.cells + cell)] = 1;
    stats_.rewritten_bbox += add_box_delta(view_, anchor, cell, truth) ? 1 : 0;
    ++stats_.total_bbox;
  }

  // ---- step 3 and sums ----------------------------------------------------------------------

  // Also divides where one truth left several positive class deltas: the reference's rule.
  void average_boxes() {
    for (int a = 0; a < p_.anchors_per_cell(); ++a) {
      for (std::int64_t cell = 0; cell < view_.cells; ++cell) {
        if (scratch_.touched[static_cast<std::size_t>(a * view_.cells + cell)] == 0) continue;
        if (delta_[view_.plane(a, 4) + cell] == 0) continue;
        const T* classes = delta_ + view_.plane(a, 5) + cell;
        int positive_classes = 0;
        for (int k = 0; k < p_.classes; ++k)
          positive_classes += classes[k * view_.cells] > 0 ? 1 : 0;
        if (positive_classes < 2) continue;
        T* box = delta_ + view_.plane(a, 0) + cell;
        for (int e = 0; e < 4; ++e) box[e * view_.cells] /= static_cast<T>(positive_classes);
      }
    }
  }

  void sum_squares() {
    const auto square_at = [&](std::int64_t at) {
      const auto v = static_cast<double>(delta_[at]);
      return v * v;
    };
    for (int a = 0; a < p_.anchors_per_cell(); ++a) {
      for (std::int64_t cell = 0; cell < view_.cells; ++cell) {
        stats_.objectness_squares += square_at(view_.plane(a, 4) + cell);
        if (scratch_.touched[static_cast<std::size_t>(a * view_.cells + cell)] == 0) continue;
        for (int e = 0; e < 4; ++e) stats_.box_squares += square_at(view_.plane(a, e) + cell);
        for (int k = 0; k < p_.classes; ++k) {
          stats_.class_squares += square_at(view_.plane(a, 5 + k) + cell);
        }
      }
    }
    stats_.non_box_squares = stats_.objectness_squares + stats_.class_squares;
    stats_.delta_squares = stats_.box_squares + stats_.non_box_squares;
  }

  const YoloParams& p_;
  const ImageView<T> view_;
  T* delta_;
  Scratch<T> scratch_;
  int highest_counter_ = 1;
  std::size_t truth_count_ = 0;
  YoloImageStats stats_;
};

}  // namespace

template <typename T>
Bytes yolo_scratch_bytes(const YoloParams& params) {
  Scratch<T> unused;
  return static_cast<Bytes>(lay_out<T>(params, nullptr, unused) + kAlign);
}

template <typename T>
YoloImageStats yolo_delta(const YoloParams& params, const T* activated, const float* truth_rows,
                          T* delta, std::span<std::byte> scratch) {
  LANTERN_ASSERT(static_cast<Bytes>(scratch.size()) >= yolo_scratch_bytes<T>(params),
                 "scratch of yolo_delta as large as yolo_scratch_bytes says");
  LANTERN_ASSERT(std::all_of(params.mask.begin(), params.mask.end(),
                             [&](int m) { return m >= 0 && m < params.total_anchors(); }),
                 "mask indices within the anchors");
  auto base = reinterpret_cast<std::uintptr_t>(scratch.data());
  const std::size_t skip = (kAlign - base % kAlign) % kAlign;
  Scratch<T> parts;
  lay_out<T>(params, scratch.data() + skip, parts);
  return ImageLoss<T>(params, activated, delta, parts).run(truth_rows);
}

template Bytes yolo_scratch_bytes<float>(const YoloParams&);
template Bytes yolo_scratch_bytes<double>(const YoloParams&);
template YoloImageStats yolo_delta(const YoloParams&, const float*, const float*, float*,
                                   std::span<std::byte>);
template YoloImageStats yolo_delta(const YoloParams&, const double*, const float*, double*,
                                   std::span<std::byte>);

}  // namespace lantern::ops
