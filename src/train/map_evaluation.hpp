#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/evaluate.hpp"
#include "train/run_setup.hpp"

namespace lantern::train {

/// -map: mean average precision of the validation list.
class MapEvaluation final : public TrainingEvaluation {
 public:
  MapEvaluation(const RunSetup& run, const TrainSettings& settings, std::filesystem::path list,
                bool letter_box);
  std::string_view flag() const override { return "-map"; }
  std::string_view name() const override { return "mAP"; }
  std::int64_t next_after(std::int64_t last) const override;
  Measured measure(exec::Model& model, Console& console) override;
  std::string line(const Measured& measured, double best, std::int64_t next) const override;

 private:
  EvaluateOptions options_;
  std::vector<std::string> names_;
  std::int64_t every_ = 100, first_ = 0;  ///< iterations
  bool told_bad_images_ = false, told_no_truth_ = false;
};

}  // namespace lantern::train
