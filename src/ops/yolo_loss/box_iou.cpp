#include "ops/yolo_loss/box_iou.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lantern::ops {
namespace {

template <typename T>
struct Edges {
  T top, bottom, left, right;
};

template <typename T>
Edges<T> edges_of(const Box<T>& b) {
  const T half_w = b.w / 2;
  const T half_h = b.h / 2;
  return {b.y - half_h, b.y + half_h, b.x - half_w, b.x + half_w};
}

template <typename T>
T square(T v) {
  return v * v;
}

/// Intersection with both extents clamped at 0.
template <typename T>
T clamped_intersection(const Edges<T>& a, const Edges<T>& b) {
  const T w = std::min(a.right, b.right) - std::max(a.left, b.left);
  const T h = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return w > 0 && h > 0 ? w * h : T(0);
}

template <typename T>
struct Enclosing {
  T w, h;
  T area() const { return w * h; }
  T diagonal_squared() const { return w * w + h * h; }
};

template <typename T>
Enclosing<T> enclosing_of(const Edges<T>& a, const Edges<T>& b) {
  return {std::max(a.right, b.right) - std::min(a.left, b.left),
          std::max(a.bottom, b.bottom) - std::min(a.top, b.top)};
}

template <typename T>
T centre_distance_squared(const Box<T>& a, const Box<T>& b) {
  return square(a.x - b.x) + square(a.y - b.y);
}

/// atan of the truth's aspect minus atan of the prediction's.
template <typename T>
T aspect_difference(const Box<T>& predicted, const Box<T>& truth) {
  return std::atan(truth.w / truth.h) - std::atan(predicted.w / predicted.h);
}

constexpr double kPi2 = std::numbers::pi * std::numbers::pi;

/// Value of the kind with the distance term of diou raised to `diou_power`.
template <typename T>
T value_of(IouKind kind, const Box<T>& a, const Box<T>& b, T diou_power) {
  const Edges<T> ea = edges_of(a);
  const Edges<T> eb = edges_of(b);
  const T intersection = clamped_intersection(ea, eb);
  const T union_area = a.w * a.h + b.w * b.h - intersection;
  const T iou = intersection == 0 || union_area == 0 ? T(0) : intersection / union_area;
  const Enclosing<T> c = enclosing_of(ea, eb);
  switch (kind) {
    case IouKind::kIou:
    case IouKind::kMse:
      return iou;
    case IouKind::kGiou:
      return c.area() == 0 ? iou : iou - (c.area() - union_area) / c.area();
    case IouKind::kDiou: {
      const T d = c.diagonal_squared();
      if (d == 0) return iou;
      const T ratio = centre_distance_squared(a, b) / d;
      return iou - (diou_power == 1 ? ratio : std::pow(ratio, diou_power));
    }
    case IouKind::kCiou: {
      const T d = c.diagonal_squared();
      if (d == 0) return iou;
      const T v = T(4 / kPi2) * square(aspect_difference(a, b));
      const T alpha = v / (1 - iou + v + T(1e-6));
      return iou - (centre_distance_squared(a, b) / d + alpha * v);
    }
  }
  return iou;
}

}  // namespace

template <typename T>
T box_iou(const Box<T>& a, const Box<T>& b) {
  return value_of(IouKind::kIou, a, b, T(1));
}

template <typename T>
T box_iou(IouKind kind, const Box<T>& a, const Box<T>& b) {
  return value_of(kind, a, b, T(0.6));
}

template <typename T>
T iou_objective(IouKind kind, const Box<T>& predicted, const Box<T>& truth) {
  return value_of(kind, predicted, truth, T(1));
}

template <typename T>
BoxVector<T> reference_iou_gradient(IouKind kind, const Box<T>& predicted, const Box<T>& truth) {
  const Edges<T> raw = edges_of(predicted);
  const Edges<T> p{std::min(raw.top, raw.bottom), std::max(raw.top, raw.bottom),
                   std::min(raw.left, raw.right), std::max(raw.left, raw.right)};
  const Edges<T> t = edges_of(truth);
  const T w = p.right - p.left;
  const T h = p.bottom - p.top;
  const T iw = std::min(p.right, t.right) - std::max(p.left, t.left);
  const T ih = std::min(p.bottom, t.bottom) - std::max(p.top, t.top);
  const T intersection =
      iw * ih;  // positive too where both extents are negative, as in the reference
  const T union_area = w * h + (t.bottom - t.top) * (t.right - t.left) - intersection;
  const Enclosing<T> c = enclosing_of(p, t);
  const bool apart = iw <= 0 || ih <= 0;

  const Edges<T> d_area{-w, w, -h, h};
  const Edges<T> d_intersection{p.top > t.top ? -iw : T(0), p.bottom < t.bottom ? iw : T(0),
                                p.left > t.left ? -ih : T(0), p.right < t.right ? ih : T(0)};
  const Edges<T> d_enclosing{p.top < t.top ? -c.w : T(0), p.bottom > t.bottom ? c.w : T(0),
                             p.left < t.left ? -c.h : T(0), p.right > t.right ? c.h : T(0)};
  const auto edge = [&](T da, T di, T dc) {
    const T du = da - di;
    T q = union_area > 0 ? (union_area * di - intersection * du) / square(union_area) : T(0);
    if (kind == IouKind::kGiou) {
      const T area = c.area();
      const T term = (area * du - union_area * dc) / square(area);
      if (area > 0) q += term;
      if (apart) q = term;
    }
    return q;
  };
  T top = edge(d_area.top, d_intersection.top, d_enclosing.top);
  const T bottom = edge(d_area.bottom, d_intersection.bottom, d_enclosing.bottom);
  T left = edge(d_area.left, d_intersection.left, d_enclosing.left);
  const T right = edge(d_area.right, d_intersection.right, d_enclosing.right);
  if (!(raw.top < raw.bottom)) top = bottom;  // a box thinner than the float resolution
  if (!(raw.left < raw.right)) left = right;

  BoxVector<T> g{left + right, top + bottom, right - left, bottom - top};
  if (kind != IouKind::kDiou && kind != IouKind::kCiou) return g;

  const T d = c.diagonal_squared();
  const T s = centre_distance_squared(predicted, truth);
  const T right_out = p.right > t.right ? T(1) : T(0);
  const T left_out = p.left < t.left ? T(1) : T(0);
  const T bottom_out = p.bottom > t.bottom ? T(1) : T(0);
  const T top_out = p.top < t.top ? T(1) : T(0);
  const auto centre_term = [&](T difference, T extent, T slope) {
    return (2 * difference * d - 2 * extent * slope * s) / square(d);
  };
  BoxVector<T> extra{centre_term(truth.x - predicted.x, c.w, right_out - left_out),
                     centre_term(truth.y - predicted.y, c.h, bottom_out - top_out),
                     2 * c.w * ((right_out + left_out) / 2) * s / square(d),
                     2 * c.h * ((bottom_out + top_out) / 2) * s / square(d)};
  if (kind == IouKind::kCiou) {
    const T difference = aspect_difference(predicted, truth);
    const T v = T(4 / kPi2) * square(difference);
    const T alpha = v / (1 - intersection / union_area + v + T(1e-6));
    // Without the factor 1 / (w^2 + h^2), as in the paper's code.
    extra.w += alpha * T(8 / kPi2) * difference * predicted.h;
    extra.h -= alpha * T(8 / kPi2) * difference * predicted.w;
  }
  if (apart) return extra;
  return {g.x + extra.x, g.y + extra.y, g.w + extra.w, g.h + extra.h};
}

// With dI, dU, dC (area), dD (squared diagonal), dS (squared centre distance) the derivatives of
// the parts by one box coordinate:
//   iou   (U dI - I dU) / U^2                     dIw/dx = [R<Rt] - [L>Lt], dIw/dw = ([R<Rt] +
//   [L>Lt]) / 2 giou  + (C dU - U dC) / C^2                   dCw/dx = [R>Rt] - [L<Lt], dCw/dw =
//   ([R>Rt] + [L<Lt]) / 2 diou  - (D dS - S dD) / D^2 ciou  diou - d(v^2 / q), q = 1 - iou + v +
//   1e-6, d(v^2 / q) = (2 v q dv - v^2 (dv - diou)) / q^2,
//         dv/dw = -(8/pi^2) A h / (w^2 + h^2), dv/dh = (8/pi^2) A w / (w^2 + h^2), A = atan(wt/ht)
//         - atan(w/h)
template <typename T>
BoxVector<T> exact_iou_gradient(IouKind kind, const Box<T>& predicted, const Box<T>& truth) {
  const Edges<T> p = edges_of(predicted);
  const Edges<T> t = edges_of(truth);
  const T iw = std::min(p.right, t.right) - std::max(p.left, t.left);
  const T ih = std::min(p.bottom, t.bottom) - std::max(p.top, t.top);
  const bool apart = iw <= 0 || ih <= 0;
  const T intersection = apart ? T(0) : iw * ih;
  const T union_area = predicted.w * predicted.h + truth.w * truth.h - intersection;
  const T iou = intersection == 0 || union_area == 0 ? T(0) : intersection / union_area;
  const Enclosing<T> c = enclosing_of(p, t);
  const auto is = [](bool condition) { return condition ? T(1) : T(0); };

  BoxVector<T> d_intersection;
  if (!apart) {
    d_intersection = {(is(p.right < t.right) - is(p.left > t.left)) * ih,
                      (is(p.bottom < t.bottom) - is(p.top > t.top)) * iw,
                      (is(p.right < t.right) + is(p.left > t.left)) / 2 * ih,
                      (is(p.bottom < t.bottom) + is(p.top > t.top)) / 2 * iw};
  }
  const BoxVector<T> d_area{0, 0, predicted.h, predicted.w};
  // Extents of the enclosing box: cw by x and w, ch by y and h.
  const BoxVector<T> d_extent{is(p.right > t.right) - is(p.left < t.left),
                              is(p.bottom > t.bottom) - is(p.top < t.top),
                              (is(p.right > t.right) + is(p.left < t.left)) / 2,
                              (is(p.bottom > t.bottom) + is(p.top < t.top)) / 2};

  const T s = centre_distance_squared(predicted, truth);
  const T d = c.diagonal_squared();
  T v = 0;
  BoxVector<T> d_v;
  if (kind == IouKind::kCiou) {
    const T a = aspect_difference(predicted, truth);
    const T slope = T(8 / kPi2) * a / (square(predicted.w) + square(predicted.h));
    v = T(4 / kPi2) * square(a);
    d_v = {0, 0, -slope * predicted.h, slope * predicted.w};
  }
  const T q = 1 - iou + v + T(1e-6);

  // `side`: extent of the enclosing box along this coordinate; `other`: across.
  const auto gradient = [&](T di, T da, T dc, T side, T other, T ds, T dv) {
    const T du = da - di;
    const T d_iou =
        union_area == 0 ? T(0) : (union_area * di - intersection * du) / square(union_area);
    switch (kind) {
      case IouKind::kIou:
      case IouKind::kMse:
        return d_iou;
      case IouKind::kGiou:
        if (c.area() == 0) return d_iou;
        return d_iou + (c.area() * du - union_area * dc * other) / square(c.area());
      case IouKind::kDiou:
      case IouKind::kCiou:
        break;
    }
    if (d == 0) return d_iou;
    const T g = d_iou - (d * ds - s * 2 * side * dc) / square(d);
    if (kind == IouKind::kDiou) return g;
    return g - (2 * v * q * dv - square(v) * (dv - d_iou)) / square(q);
  };
  const T dx = predicted.x - truth.x;
  const T dy = predicted.y - truth.y;
  return {gradient(d_intersection.x, d_area.x, d_extent.x, c.w, c.h, 2 * dx, d_v.x),
          gradient(d_intersection.y, d_area.y, d_extent.y, c.h, c.w, 2 * dy, d_v.y),
          gradient(d_intersection.w, d_area.w, d_extent.w, c.w, c.h, T(0), d_v.w),
          gradient(d_intersection.h, d_area.h, d_extent.h, c.h, c.w, T(0), d_v.h)};
}

#define LANTERN_INSTANTIATE(T)                                                         \
  template T box_iou(const Box<T>&, const Box<T>&);                                    \
  template T box_iou(IouKind, const Box<T>&, const Box<T>&);                           \
  template T iou_objective(IouKind, const Box<T>&, const Box<T>&);                     \
  template BoxVector<T> reference_iou_gradient(IouKind, const Box<T>&, const Box<T>&); \
  template BoxVector<T> exact_iou_gradient(IouKind, const Box<T>&, const Box<T>&);
LANTERN_INSTANTIATE(float)
LANTERN_INSTANTIATE(double)
#undef LANTERN_INSTANTIATE

}  // namespace lantern::ops
