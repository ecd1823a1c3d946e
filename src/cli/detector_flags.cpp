#include <array>

#include "cli/detector.hpp"

namespace lantern::cli {

namespace {

constexpr std::string_view kNoBudget =
    "this version plans with every tensor in memory; `lantern plan` shows how much that is, a "
    "larger subdivisions= in the cfg needs less";
constexpr std::string_view kCpuOnly = "this build computes on the CPU only";
constexpr std::string_view kNoServer =
    "this version serves nothing over the network; the chart is a file in the backup folder";

// Every flag of `darknet detector`, and ours. Those of verbs that this program does not have stand
// here too, so that old scripts get a warning and not an error.
constexpr std::array kDetectorFlags{
    // train
    Flag{.name = "clear",
         .doc = "start at iteration 0, whatever the weights file says",
         .used_by = "train"},
    Flag{.name = "map",
         .doc = "evaluate while training and keep the best weights as _best",
         .used_by = "train"},
    Flag{.name = "mAP_epochs",
         .kind = ValueKind::kFloat,
         .value = "N",
         .otherwise = "4",
         .doc = "epochs between evaluations, at least 100 iterations",
         .used_by = "train",
         .min = 0.01,
         .max = 1e6,
         .needs = "map"},
    Flag{.name = "chart",
         .kind = ValueKind::kText,
         .value = "FILE",
         .doc = "where the chart goes (default chart_<cfg>.png in the backup folder)",
         .used_by = "train"},
    Flag{.name = "log",
         .kind = ValueKind::kText,
         .value = "FILE",
         .doc = "numbers of every iteration as JSON lines (default <cfg>_metrics.jsonl in the "
                "backup folder)",
         .used_by = "train"},
    Flag{.name = "show_imgs",
         .kind = ValueKind::kOptionalText,
         .value = "N",
         .doc =
             "first draw the first 64 (or N) training pictures, as augmented and with boxes, into "
             "augmented_<cfg>.png in the backup folder",
         .used_by = "train"},
    Flag{.name = "seed",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "seed of all random draws (default seed= of the cfg, else 0)",
         .used_by = "train",
         .min = 0},
    Flag{.name = "on_nan",
         .kind = ValueKind::kText,
         .value = "stop|skip",
         .doc = "when the loss is not finite (default on_nan= of the cfg, else stop)",
         .used_by = "train"},
    Flag{.name = "strict", .doc = "the first bad label or image ends the run", .used_by = "train"},
    Flag{.name = "gpus",
         .kind = ValueKind::kText,
         .value = "LIST",
         .used_by = "train",
         .refusal = kCpuOnly},
    Flag{.name = "mini_batch",
         .kind = ValueKind::kText,
         .value = "N",
         .used_by = "train",
         .refusal = "the mini-batch is batch / subdivisions of the cfg; set those"},
    Flag{.name = "resume",
         .kind = ValueKind::kOptionalText,
         .value = "FILE",
         .used_by = "train",
         .refusal = "this version keeps no complete state; give the _last.weights file as weights, "
                    "the iteration goes on from there"},
    Flag{.name = "run_dir",
         .kind = ValueKind::kText,
         .value = "DIR",
         .used_by = "train",
         .refusal = "a run writes into the backup= folder of the .data file"},
    // what to find, what to draw
    Flag{.name = "thresh",
         .kind = ValueKind::kFloat,
         .value = "P",
         .otherwise = "0.25",
         .doc = "confidence a detection must exceed",
         .used_by = "train test map demo",
         .min = 0,
         .max = 1},
    Flag{.name = "iou_thresh",
         .kind = ValueKind::kText,
         .value = "T",
         .otherwise = "0.5",
         .doc = "overlap of a hit; map: 0.5:0.95 gives COCO's mean as well",
         .used_by = "train map"},
    Flag{.name = "points",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "0",
         .doc = "recalls to average over: 0 area under the curve, 11 VOC 2007, 101 COCO",
         .used_by = "map",
         .min = 0,
         .max = 100000},
    Flag{.name = "drop_duplicates",
         .doc = "truth boxes that a label file repeats exactly do not count",
         .used_by = "map"},
    Flag{.name = "letter_box",
         .doc = "keep the aspect ratio of pictures (also letter_box=1 in the cfg)",
         .used_by = "test demo"},
    Flag{.name = "dont_show",
         .doc = "no window; this version never opens one",
         .used_by = "train test demo"},
    Flag{.name = "ext_output",
         .doc = "with the box of each detection in pixels",
         .used_by = "test demo"},
    Flag{.name = "out",
         .kind = ValueKind::kText,
         .value = "FILE",
         .doc = "test: all detections as Darknet's JSON; valid: name of the result files",
         .used_by = "test valid"},
    Flag{.name = "json_extended",
         .doc = "-out with image size, pixel boxes, objectness and time",
         .used_by = "test",
         .needs = "out"},
    Flag{.name = "out_dir",
         .kind = ValueKind::kText,
         .value = "DIR",
         .doc = "a picture with boxes for every image (without it: predictions.jpg, overwritten)",
         .used_by = "test"},
    Flag{.name = "save_labels",
         .doc = "a label file for every image, beside the image's label path",
         .used_by = "test"},
    Flag{.name = "label_dir",
         .kind = ValueKind::kText,
         .value = "DIR",
         .doc = "where -save_labels writes instead",
         .used_by = "test",
         .needs = "save_labels"},
    Flag{.name = "force",
         .doc = "-save_labels also overwrites label files that it did not write itself",
         .used_by = "test",
         .needs = "save_labels"},
    Flag{.name = "batch",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "1",
         .doc = "images of one forward pass; results do not depend on it",
         .used_by = "test map valid",
         .min = 1,
         .max = 4096},
    Flag{.name = "tolerate_bad_images",
         .doc = "end with 0 although images had to be left out",
         .used_by = "test map valid"},
    Flag{.name = "json",
         .kind = ValueKind::kOptionalText,
         .value = "FILE",
         .doc = "results as JSON, to standard output or into FILE",
         .used_by = "test map"},
    Flag{.name = "curves",
         .doc = "-json with the curve of every class",
         .used_by = "map",
         .needs = "json"},
    Flag{.name = "threads",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "compute threads (default the cores that may be used)",
         .used_by = "train test map valid",
         .min = 1,
         .max = 1024},
    Flag{.name = "loader_threads",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "threads that read images (default one for two cores)",
         .used_by = "train test map valid",
         .min = 1,
         .max = 1024},
    Flag{.name = "precision",
         .kind = ValueKind::kText,
         .value = "fp32",
         .otherwise = "fp32",
         .doc = "number form of the computation",
         .used_by = "train test map valid"},
    // known, not available
    Flag{.name = "benchmark_layers",
         .used_by = "train test demo",
         .refusal = "`lantern bench CFG` measures every layer"},
    Flag{.name = "mjpeg_port",
         .kind = ValueKind::kInt,
         .value = "PORT",
         .used_by = "train demo",
         .refusal = kNoServer},
    Flag{.name = "memory", .kind = ValueKind::kText, .value = "SIZE", .refusal = kNoBudget},
    Flag{.name = "host_memory", .kind = ValueKind::kText, .value = "SIZE", .refusal = kNoBudget},
    Flag{
        .name = "disk_memory", .kind = ValueKind::kText, .value = "DIR:SIZE", .refusal = kNoBudget},
    Flag{
        .name = "max_slowdown", .kind = ValueKind::kText, .value = "PERCENT", .refusal = kNoBudget},
    Flag{.name = "trace",
         .kind = ValueKind::kText,
         .value = "FILE",
         .refusal = "this version writes no trace; `lantern bench CFG --json` has the times of "
                    "every layer"},
    // of calc_anchors and demo
    Flag{.name = "num_of_clusters",
         .kind = ValueKind::kInt,
         .value = "N",
         .used_by = "calc_anchors"},
    Flag{.name = "width", .kind = ValueKind::kInt, .value = "N", .used_by = "calc_anchors"},
    Flag{.name = "height", .kind = ValueKind::kInt, .value = "N", .used_by = "calc_anchors"},
    Flag{.name = "show", .used_by = "calc_anchors"},
    Flag{.name = "hier", .kind = ValueKind::kFloat, .value = "P", .used_by = "demo"},
    Flag{.name = "c", .kind = ValueKind::kInt, .value = "N", .used_by = "demo"},
    Flag{.name = "s", .kind = ValueKind::kInt, .value = "N", .used_by = "demo"},
    Flag{.name = "avgframes", .kind = ValueKind::kInt, .value = "N", .used_by = "demo"},
    Flag{.name = "out_filename", .kind = ValueKind::kText, .value = "FILE", .used_by = "demo"},
    Flag{.name = "prefix", .kind = ValueKind::kText, .value = "TEXT", .used_by = "demo"},
    Flag{.name = "dontdraw_bbox", .used_by = "demo"},
    Flag{.name = "json_port", .kind = ValueKind::kInt, .value = "PORT", .used_by = "demo"},
    Flag{.name = "json_file_output", .kind = ValueKind::kText, .value = "FILE", .used_by = "demo"},
    Flag{.name = "http_post_host", .kind = ValueKind::kText, .value = "HOST", .used_by = "demo"},
    Flag{.name = "time_limit_sec", .kind = ValueKind::kInt, .value = "N", .used_by = "demo"},
    Flag{.name = "benchmark", .used_by = "demo"},
};

}  // namespace

std::span<const Flag> detector_flags() { return kDetectorFlags; }

std::span<const Flag> detect_flags() {
  // The short form has the flags of `detector test` and a threshold of its own.
  static const std::vector<Flag> table = [] {
    std::vector<Flag> rows;
    for (Flag flag : kDetectorFlags) {
      if (flag.is_used_by("test")) flag.used_by = {};
      if (flag.name == "thresh") flag.otherwise = "0.24";
      rows.push_back(flag);
    }
    return rows;
  }();
  return table;
}

}  // namespace lantern::cli
