#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "ops/contrastive/contrastive.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/parallel.hpp"
#include "ops/yolo_loss/yolo_place.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

constexpr int kTruthFloats = 6;
constexpr double kSure = 0.9999;  // of a pair that has nothing to be compared with

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const ContrastiveParams&>(params);
  LANTERN_ASSERT(inputs[1].shape[1] == p.truth_floats(), "the truth is what the form reads");
  return {inputs[0], inputs[0], {Shape{inputs[0].shape.n(), 1}, DType::kF64}};
}

// The loss wrote the gradient of its input during forward; hand it on. A later reader of the output
// adds its own.
void gradient(GradientBuilder& builder, const Op& op) {
  if (!builder.wants(op.inputs[0])) return;
  const auto hand_on = [&](TensorId from) {
    builder.emit(kCopy, std::make_shared<const OpParams>(), {from}, {builder.target(op.inputs[0])});
  };
  if (const std::optional<TensorId> dy = builder.gradient(op.outputs[0])) hand_on(*dy);
  hand_on(op.outputs[1]);
}

// One embedding that takes part.
struct Item {
  std::int64_t image, first, label;  // first: of its values within the image
  int class_id;
  double norm;   // of the embedding
  double total;  // sum of e over the pairs with this item
  std::int64_t pairs;
  std::int64_t equal;  // items of its label, itself included
};

// What the items of one mini-batch need to know of the map.
struct Extents {
  std::int64_t images, image_size, length, step, most;
  Extents(const ContrastiveParams& p, const Shape& shape)
      : images(shape.n()), image_size(shape.c() * shape.h() * shape.w()) {
    const std::int64_t cells = shape.h() * shape.w();
    const std::int64_t anchors = p.yolo ? p.yolo->anchors_per_cell() : 1;
    length = p.yolo ? shape.c() / anchors : image_size;
    step = p.yolo ? cells : 1;
    most = images * (p.yolo ? std::min<std::int64_t>(p.yolo->max_truths, anchors * cells) : 1);
  }
};

class Loss {
 public:
  Loss(const ContrastiveParams& p, const Extents& e, Item* items, float* values, float* deltas)
      : p_(p), e_(e), items_(items), values_(values), deltas_(deltas) {}

  void run(const float* x, const float* truth, float* delta, double* costs, int threads) {
    collect(truth);
    std::fill_n(delta, e_.images * e_.image_size, 0.0F);
    parallel_for(count_, threads, [&](std::int64_t i) { load(i, x); });
    parallel_for(count_, threads, [&](std::int64_t i) { sum_pairs(i); });
    parallel_for(count_, threads, [&](std::int64_t i) {
      pull_and_push(i);
      store(i, delta);
    });
    parallel_for(e_.images, threads, [&](std::int64_t image) {
      double sum = 0;
      for (std::int64_t k = 0; k < e_.image_size; ++k) {
        const auto d = static_cast<double>(delta[image * e_.image_size + k]);
        sum += d * d;
      }
      costs[image] = sum;
    });
  }

 private:
  void collect(const float* truth) {
    count_ = 0;
    for (std::int64_t image = 0; image < e_.images; ++image, truth += p_.truth_floats()) {
      if (p_.yolo) {
        collect_truths(image, truth);
      } else {
        std::int64_t label = -1 - image / 2;  // without a label: the pair that it was loaded with
        for (int k = 0; k < p_.classes; ++k) {
          if (truth[k] > p_.label_threshold) label = k;
        }
        items_[count_++] = {.image = image, .first = 0, .label = label, .class_id = 0};
      }
    }
  }

  void collect_truths(std::int64_t image, const float* row) {
    const std::int64_t begin = count_;
    for (int t = 0; t < p_.yolo->max_truths && row[0] != 0; ++t, row += kTruthFloats) {
      const std::optional<YoloPlace> place = yolo_place(*p_.yolo, row);
      if (!place) continue;
      const std::int64_t first = place->anchor * e_.length * e_.step + place->cell;
      Item* item = std::find_if(items_ + begin, items_ + count_,
                                [&](const Item& other) { return other.first == first; });
      if (item == items_ + count_) ++count_;  // else the later truth counts
      *item = {.image = image,
               .first = first,
               .label = static_cast<std::int64_t>(row[5]),
               .class_id = place->class_id};
    }
  }

  const float* value(std::int64_t item) const { return values_ + item * e_.length; }

  void load(std::int64_t i, const float* x) {
    Item& item = items_[i];
    double squares = 0;
    for (std::int64_t k = 0; k < e_.length; ++k) {
      const float v = x[item.image * e_.image_size + item.first + k * e_.step];
      values_[i * e_.length + k] = v;
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
    item.norm = std::sqrt(squares);
  }
  void store(std::int64_t i, float* delta) const {
    const Item& item = items_[i];
    for (std::int64_t k = 0; k < e_.length; ++k) {
      const float d = deltas_[i * e_.length + k] * p_.cls_normalizer;
      delta[item.image * e_.image_size + item.first + k * e_.step] =
          std::clamp(d, -p_.max_delta, p_.max_delta);
    }
  }

  bool is_pair(std::int64_t i, std::int64_t j) const {
    return i != j && items_[i].class_id == items_[j].class_id &&
           items_[i].image / p_.step_images == items_[j].image / p_.step_images;
  }
  double similarity(std::int64_t i, std::int64_t j) const {
    const double norms = items_[i].norm * items_[j].norm;
    if (norms == 0) return 0;
    double sum = 0;
    for (std::int64_t k = 0; k < e_.length; ++k)
      sum += static_cast<double>(value(i)[k]) * static_cast<double>(value(j)[k]);
    return sum / norms;
  }
  double weight(double similarity) const {
    return std::exp(similarity / static_cast<double>(p_.temperature));
  }

  void sum_pairs(std::int64_t j) {
    Item& item = items_[j];
    item.total = 0;
    item.pairs = 0;
    item.equal = 0;
    for (std::int64_t k = 0; k < count_; ++k) {
      item.equal += items_[k].label == item.label ? 1 : 0;
      if (!is_pair(k, j)) continue;
      item.total += weight(similarity(k, j));
      ++item.pairs;
    }
  }

  // P_ij of a pair: e_ij over the e of j with all others.
  double probability(std::int64_t j, double similarity) const {
    if (items_[j].pairs < 2) return kSure;
    const double own = weight(similarity);
    const double p = own / (items_[j].total - own);
    return p_.yolo && !(p <= 1) ? kSure : p;
  }

  // delta_i += factor * (z_j - s z_i)
  void add(std::int64_t i, std::int64_t j, double similarity, double factor) {
    float* d = deltas_ + i * e_.length;
    const float* own = value(i);
    const float* other = value(j);
    for (std::int64_t k = 0; k < e_.length; ++k) {
      d[k] += static_cast<float>(
          factor * (static_cast<double>(other[k]) - similarity * static_cast<double>(own[k])));
    }
  }

  void pull_and_push(std::int64_t i) {
    const Item& item = items_[i];
    std::fill_n(deltas_ + i * e_.length, e_.length, 0.0F);
    if (item.equal < 2 || item.norm == 0) return;
    const double scale =
        1 / (static_cast<double>(item.equal - 1) * static_cast<double>(p_.temperature) * item.norm);
    int pushes = 0;
    for (std::int64_t j = 0; j < count_; ++j) {
      if (j == i || items_[j].label != item.label) continue;
      if (is_pair(i, j)) {
        const double s = similarity(i, j);
        add(i, j, s, scale * (1 - probability(j, s)));
      }
      for (std::int64_t k = 0; k < count_; ++k) {
        if (k == j || !is_pair(i, k)) continue;
        if (p_.yolo) {
          if (items_[k].label == item.label || items_[k].class_id != items_[j].class_id) continue;
          if (pushes == p_.negatives) break;
          ++pushes;
        }
        const double s = similarity(i, k);
        add(i, k, s, -scale * probability(k, s));
      }
    }
  }

  const ContrastiveParams& p_;
  const Extents& e_;
  Item* items_;
  float* values_;  // [item][length], as deltas_
  float* deltas_;
  std::int64_t count_ = 0;
};

}  // namespace

std::string ContrastiveParams::describe() const {
  return fmt::format("{} temperature={} weight={} negatives={}",
                     yolo ? "of detections" : "of images", temperature, cls_normalizer, negatives);
}

const graph::OpDef kContrastiveLoss{
    .name = "contrastive_loss", .infer = infer, .gradient = gradient};

KernelChoice choose_contrastive_loss(const Op& op, const SelectContext& context) {
  const ContrastiveParams params = op.params_as<ContrastiveParams>();
  const Shape shape = context.shape(op.inputs[0]);
  const Extents e(params, shape);
  const int threads = context.threads;
  const Bytes embeddings = e.most * e.length * static_cast<Bytes>(sizeof(float));
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}, Layout{}},
          .scratch = {e.most * static_cast<Bytes>(sizeof(Item)), embeddings, embeddings},
          .may_alias = {{0, 0}},
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& /*run*/) {
            const auto* x = static_cast<const float*>(o[0]);
            auto* y = static_cast<float*>(o[2]);
            if (x != y) std::copy_n(x, shape.elements(), y);
            Loss(params, e, static_cast<Item*>(o[5]), static_cast<float*>(o[6]),
                 static_cast<float*>(o[7]))
                .run(x, static_cast<const float*>(o[1]), static_cast<float*>(o[3]),
                     static_cast<double*>(o[4]), threads);
          })};
}

}  // namespace lantern::ops
