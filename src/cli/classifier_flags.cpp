#include <algorithm>
#include <array>
#include <vector>

#include "cli/classifier.hpp"
#include "cli/detector.hpp"

namespace lantern::cli {

namespace {

// Flags of `detector` that a classifier has too, by the subverbs of `classifier` that use them.
struct Shared {
  std::string_view name, used_by;
};
constexpr std::string_view kEvaluating = "predict valid valid10 validcrop validmulti";
constexpr std::string_view kAll = "train predict valid valid10 validcrop validmulti";
constexpr std::array kShared{
    Shared{"clear", "train"},       Shared{"chart", "train"},
    Shared{"log", "train"},         Shared{"show_imgs", "train"},
    Shared{"seed", "train"},        Shared{"on_nan", "train"},
    Shared{"strict", "train"},      Shared{"gpus", "train"},
    Shared{"memory", "train"},      Shared{"host_memory", "train"},
    Shared{"disk_memory", "train"}, Shared{"max_slowdown", "train"},
    Shared{"mini_batch", "train"},  Shared{"trace", "train"},
    Shared{"resume", "train"},      Shared{"run_dir", "train"},
    Shared{"dont_show", "train"},   Shared{"batch", kEvaluating},
    Shared{"json", kEvaluating},    Shared{"tolerate_bad_images", kEvaluating},
    Shared{"threads", kAll},        Shared{"loader_threads", kAll},
    Shared{"precision", kAll},      Shared{"benchmark_layers", "train predict"},
    Shared{"mjpeg_port", "train"},
};

constexpr std::array kOwn{
    Flag{.name = "topk",
         .doc =
             "evaluate while training: the right answers, and those among the first top= (key of "
             "the .data file, 5), go into the chart; the best weights are kept as _best",
         .used_by = "train"},
    Flag{.name = "t",
         .kind = ValueKind::kInt,
         .value = "K",
         .doc = "classes to print (default top= of the .data file, else 1)",
         .used_by = "predict",
         .min = 1,
         .max = 1e6},
    Flag{.name = "dontuse_opencv", .doc = "OpenCV is never used", .used_by = "train"},
    Flag{.name = "benchmark",
         .used_by = "train predict",
         .refusal = "`lantern bench CFG` measures speed"},
    // of demo
    Flag{.name = "c", .kind = ValueKind::kInt, .value = "N", .used_by = "demo"},
};

}  // namespace

std::span<const Flag> classifier_flags() {
  static const std::vector<Flag> table = [] {
    std::vector<Flag> rows(kOwn.begin(), kOwn.end());
    for (const Shared& shared : kShared) {
      Flag flag = *std::ranges::find(detector_flags(), shared.name, &Flag::name);
      flag.used_by = shared.used_by;
      if (flag.name == "show_imgs") {
        flag.doc =
            "first draw the first 64 (or N) training pictures, as augmented and with their "
            "classes, into augmented_<cfg>.png in the backup folder";
      }
      rows.push_back(flag);
    }
    return rows;
  }();
  return table;
}

std::span<const Flag> classify_flags() {
  // The short form has the flags of `classifier predict` and shows five classes.
  static const std::vector<Flag> table = [] {
    std::vector<Flag> rows;
    for (Flag flag : classifier_flags()) {
      if (flag.is_used_by("predict")) flag.used_by = {};
      if (flag.name == "t") {
        flag.otherwise = "5";
        flag.doc = "classes to print";
      }
      rows.push_back(flag);
    }
    return rows;
  }();
  return table;
}

}  // namespace lantern::cli
