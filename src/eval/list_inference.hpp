#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "eval/inference.hpp"

namespace lantern::eval {

/// How the pictures of a list reach a network.
struct ListSpec {
  std::vector<std::string> images{};
  bool letter_box = false;
  bool exif = true;  ///< turn pictures upright
  int threads = 1;   ///< that read pictures
};

struct ListImage {
  const data::EvalItem& item;  ///< with an error: the picture could not be used
  std::int64_t place = 0;      ///< in the inference's last run
};

using ListProgress =
    std::function<void(std::int64_t done, std::int64_t total, double images_per_second)>;

/// Runs a network over all pictures of a list, with its forward batch (the last one may be
/// smaller), and hands them out in order. Both functions may throw.
void run_list(exec::Model& model, Inference& inference, const ListSpec& spec,
              const std::function<void(const ListImage& image)>& use,
              const ListProgress& progress = {});

}  // namespace lantern::eval
