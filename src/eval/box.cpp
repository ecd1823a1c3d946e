#include "eval/box.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lantern::eval {
namespace {

float overlap(float low_a, float high_a, float low_b, float high_b) {
  return std::min(high_a, high_b) - std::max(low_a, low_b);
}

float span_of(float low_a, float high_a, float low_b, float high_b) {
  return std::max(high_a, high_b) - std::min(low_a, low_b);
}

float intersection(const Box& a, const Box& b) {
  const float w = overlap(a.left(), a.right(), b.left(), b.right());
  const float h = overlap(a.top(), a.bottom(), b.top(), b.bottom());
  return w < 0 || h < 0 ? 0 : w * h;
}

float union_area(const Box& a, const Box& b) { return a.w * a.h + b.w * b.h - intersection(a, b); }

/// S/D: squared centre distance over squared diagonal of the enclosing box; negative when D is 0.
float centre_distance(const Box& a, const Box& b) {
  const float w = span_of(a.left(), a.right(), b.left(), b.right());
  const float h = span_of(a.top(), a.bottom(), b.top(), b.bottom());
  const float diagonal = w * w + h * h;
  if (diagonal == 0) return -1;
  const float dx = a.x - b.x;
  const float dy = a.y - b.y;
  return (dx * dx + dy * dy) / diagonal;
}

}  // namespace

float iou(const Box& a, const Box& b) {
  const float common = intersection(a, b);
  const float all = union_area(a, b);
  return common == 0 || all == 0 ? 0 : common / all;
}

float giou(const Box& a, const Box& b) {
  const float w = span_of(a.left(), a.right(), b.left(), b.right());
  const float h = span_of(a.top(), a.bottom(), b.top(), b.bottom());
  const float enclosing = w * h;
  const float value = iou(a, b);
  return enclosing == 0 ? value : value - (enclosing - union_area(a, b)) / enclosing;
}

float diou(const Box& a, const Box& b, float exponent) {
  const float value = iou(a, b);
  const float distance = centre_distance(a, b);
  return distance < 0 ? value : value - std::pow(distance, exponent);
}

float ciou(const Box& a, const Box& b) {
  const float value = iou(a, b);
  const float distance = centre_distance(a, b);
  if (distance < 0) return value;
  constexpr float kScale = 4 / (std::numbers::pi_v<float> * std::numbers::pi_v<float>);
  // atan2 gives the angle of a box without height too.
  const float angle = std::atan2(b.w, b.h) - std::atan2(a.w, a.h);
  const float v = kScale * angle * angle;
  const float alpha = v / (1 - value + v + 1e-6F);
  return value - (distance + alpha * v);
}

}  // namespace lantern::eval
