#pragma once

#include "data/class_labels.hpp"
#include "train/training_evaluation.hpp"

namespace lantern::train {

/// -topk: share of right answers on the validation list, the first and among the first k.
class TopKEvaluation final : public TrainingEvaluation {
 public:
  TopKEvaluation(data::ClassSet set, int top, std::int64_t burn_in, double iterations_per_epoch,
                 int threads);
  std::string_view flag() const override { return "-topk"; }
  std::string_view name() const override { return "accuracy"; }
  std::int64_t next_after(std::int64_t last) const override;
  Measured measure(exec::Model& model, Console& console) override;
  std::string line(const Measured& measured, double best, std::int64_t next) const override;

 private:
  data::ClassSet set_;
  int top_;
  std::int64_t burn_in_;
  double iterations_per_epoch_;
  int threads_;
  bool told_bad_images_ = false;
};

}  // namespace lantern::train
