#include "layers/net.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "core/text.hpp"

namespace lantern::layers {
namespace {

using K = cfg::Key<NetSpec>;
using cfg::from;
using cfg::word_field;

constexpr std::array<cfg::Word, 8> kPolicies{{{"constant", 0},
                                              {"step", 1},
                                              {"steps", 2},
                                              {"exp", 3},
                                              {"poly", 4},
                                              {"random", 5},
                                              {"sigmoid", 6},
                                              {"sgdr", 7}}};
constexpr std::array<cfg::Word, 4> kPrecisions{
    {{"fp32", 0}, {"bf16", 1}, {"tf32", 2}, {"fp16", 3}}};
constexpr std::array<cfg::Word, 3> kOnNan{{{"stop", 0}, {"skip", 1}, {"rollback", 2}}};
constexpr std::array<cfg::Word, 2> kSamplings{{{"epoch", 0}, {"replacement", 1}}};
constexpr std::array<cfg::Word, 2> kMissingLabels{{{"negative", 0}, {"error", 1}}};
constexpr std::array<cfg::Word, 2> kExif{{{"apply", 0}, {"ignore", 1}}};
constexpr std::array<cfg::Word, 3> kConvAlgorithms{{{"auto", 0}, {"direct", 1}, {"winograd", 2}}};
constexpr std::array<cfg::Word, 2> kResizeModes{{{"darknet", 0}, {"same", 1}}};
constexpr std::array<cfg::Word, 3> kCaches{{{"none", 0}, {"ram", 1}, {"disk", 2}}};
constexpr std::array<cfg::Word, 1> kAuto{{{"auto", -1}}};

constexpr std::array kNetKeyTable{
    // Batching and time
    K{.name = "batch",
      .field = &NetSpec::batch,
      .otherwise = 1,
      .min = 1,
      .max = 1 << 24,
      .unit = "images",
      .doc = "Images per optimiser step. Must be a multiple of subdivisions."},
    K{.name = "subdivisions",
      .field = &NetSpec::subdivisions,
      .otherwise = 1,
      .min = 1,
      .max = 1 << 24,
      .doc = "Mini-batches accumulated per optimiser step; mini-batch = batch / subdivisions."},
    K{.name = "time_steps",
      .field = &NetSpec::time_steps,
      .otherwise = 1,
      .max = 1 << 16,
      .doc = "Sequence length of recurrent layers; values below 1 become 1."},
    K{.name = "sequential_subdivisions",
      .field = &NetSpec::sequential_subdivisions,
      .otherwise = from("= subdivisions", [](const auto& s) { return s.subdivisions; }),
      .min = 1,
      .max = 1 << 24,
      .doc = "With track=1: sequence = max(1, subdivisions / sequential_subdivisions)."},
    K{.name = "dynamic_minibatch",
      .field = &NetSpec::dynamic_minibatch,
      .doc = "1: raise the mini-batch when random resizing picks a smaller size."},
    K{.name = "max_batches",
      .field = &NetSpec::max_batches,
      .min = 0,
      .doc = "Optimiser steps of the whole training."},
    // Input geometry
    K{.name = "width",
      .field = &NetSpec::width,
      .min = 0,
      .max = 1 << 16,
      .unit = "px",
      .doc = "Width of the network input."},
    K{.name = "height",
      .field = &NetSpec::height,
      .min = 0,
      .max = 1 << 16,
      .unit = "px",
      .doc = "Height of the network input."},
    K{.name = "channels",
      .field = &NetSpec::channels,
      .min = 0,
      .max = 1 << 16,
      .doc = "Channels of the network input."},
    K{.name = "inputs",
      .field = &NetSpec::inputs,
      .otherwise = from("= height * width * channels",
                        [](const auto& s) {
                          // Beyond an int only for sizes that are refused later.
                          return std::min(2e9, 1.0 * s.height * s.width * s.channels);
                        }),
      .min = 0,
      .doc = "Numbers per sample of a network without width, height and channels."},
    K{.name = "max_crop",
      .field = &NetSpec::max_crop,
      .otherwise = from("= 2 * width", [](const auto& s) { return 2 * s.width; }),
      .min = 0,
      .unit = "px",
      .doc = "Classifier: largest random length of the short side."},
    K{.name = "min_crop",
      .field = &NetSpec::min_crop,
      .otherwise = from("= width", [](const auto& s) { return s.width; }),
      .min = 0,
      .unit = "px",
      .doc = "Classifier: smallest random length of the short side."},
    K{.name = "resize_step",
      .field = &NetSpec::resize_step,
      .otherwise = 32,
      .min = 1,
      .unit = "px",
      .doc = "Step of random multi-scale sizes.",
      .truncates = true},
    K{.name = "letter_box",
      .field = &NetSpec::letter_box,
      .doc = "1: keep the aspect ratio in detector training, validation and demo."},
    // Optimiser
    K{.name = "learning_rate",
      .field = &NetSpec::learning_rate,
      .otherwise = 0.001,
      .min = 0,
      .doc = "Base rate."},
    K{.name = "learning_rate_min",
      .field = &NetSpec::learning_rate_min,
      .otherwise = 0.00001,
      .min = 0,
      .doc = "Lower bound of policy sgdr."},
    K{.name = "momentum", .field = &NetSpec::momentum, .otherwise = 0.9, .doc = "Momentum of SGD."},
    K{.name = "decay",
      .field = &NetSpec::decay,
      .otherwise = 0.0001,
      .doc = "L2 decay of weights; biases and scales are not decayed."},
    K{.name = "adam", .field = &NetSpec::adam, .doc = "1: Adam in place of SGD."},
    K{.name = "B1",
      .field = &NetSpec::B1,
      .otherwise = 0.9,
      .min = 0,
      .max = 1,
      .doc = "Adam: beta1."},
    K{.name = "B2",
      .field = &NetSpec::B2,
      .otherwise = 0.999,
      .min = 0,
      .max = 1,
      .doc = "Adam: beta2."},
    K{.name = "eps",
      .field = &NetSpec::eps,
      .otherwise = 0.000001,
      .min = 0,
      .doc = "Adam: epsilon."},
    K{.name = "loss_scale",
      .field = &NetSpec::loss_scale,
      .otherwise = 1,
      .doc = "Static loss scale of mixed precision."},
    K{.name = "try_fix_nan",
      .field = &NetSpec::try_fix_nan,
      .doc = "1: replace NaN and infinite values in activations, gradients and parameters."},
    K{.name = "ema_alpha",
      .field = &NetSpec::ema_alpha,
      .min = 0,
      .max = 1,
      .doc = "Exponential moving average of convolution parameters; 0: off."},
    K{.name = "weights_reject_freq",
      .field = &NetSpec::weights_reject_freq,
      .min = 0,
      .unit = "iterations",
      .doc = "Every so often initialise one of the two most similar filters of each layer anew; 0: "
             "off."},
    // Learning-rate policy
    K{.name = "policy",
      .field = word_field<NetSpec, &NetSpec::policy>(),
      .otherwise = "constant",
      .doc = "How the rate depends on the iteration.",
      .words = kPolicies},
    K{.name = "burn_in",
      .field = &NetSpec::burn_in,
      .min = 0,
      .unit = "iterations",
      .doc = "Warm-up: rate * (iteration / burn_in)^power, whatever the policy."},
    K{.name = "power",
      .field = &NetSpec::power,
      .otherwise = 4,
      .doc = "Exponent of burn_in, poly and random."},
    K{.name = "step",
      .field = &NetSpec::step,
      .otherwise = 1,
      .doc = "Policy step: period; policy sigmoid: centre."},
    K{.name = "scale",
      .field = &NetSpec::scale,
      .otherwise = 1,
      .doc = "Policy step: factor of each period."},
    K{.name = "steps",
      .field = &NetSpec::steps,
      .unit = "iterations",
      .doc = "Policies steps and sgdr: iterations at which a scale starts to apply. Negative: at "
             "once."},
    K{.name = "scales", .field = &NetSpec::scales, .doc = "Factor of the rate at each of steps."},
    K{.name = "seq_scales",
      .field = &NetSpec::seq_scales,
      .doc = "Factor of sequential_subdivisions at each of steps."},
    K{.name = "gamma",
      .field = &NetSpec::gamma,
      .otherwise = 1,
      .doc = "Policies exp and sigmoid."},
    K{.name = "sgdr_cycle",
      .field = &NetSpec::sgdr_cycle,
      .otherwise = from("= max_batches", [](const auto& s) { return s.max_batches; }),
      .min = 0,
      .unit = "iterations",
      .doc = "Policy sgdr: length of the first cosine cycle."},
    K{.name = "sgdr_mult",
      .field = &NetSpec::sgdr_mult,
      .otherwise = 2,
      .min = 1,
      .doc = "Policy sgdr: each cycle is so many times longer than the one before."},
    // Augmentation
    K{.name = "angle",
      .field = &NetSpec::angle,
      .unit = "degrees",
      .doc = "Classifier: range of random rotation."},
    K{.name = "aspect",
      .field = &NetSpec::aspect,
      .otherwise = 1,
      .doc = "Classifier: range of the aspect ratio."},
    K{.name = "saturation",
      .field = &NetSpec::saturation,
      .otherwise = 1,
      .doc = "HSV saturation factor, drawn from [1, s] or its inverse."},
    K{.name = "exposure",
      .field = &NetSpec::exposure,
      .otherwise = 1,
      .doc = "HSV value factor, drawn from [1, s] or its inverse."},
    K{.name = "hue", .field = &NetSpec::hue, .doc = "Range of the HSV hue shift, -hue..hue."},
    K{.name = "flip", .field = &NetSpec::flip, .otherwise = 1, .doc = "1: random horizontal flip."},
    K{.name = "blur", .field = &NetSpec::blur, .doc = "Strength of random blur; 0: off."},
    K{.name = "gaussian_noise",
      .field = &NetSpec::gaussian_noise,
      .min = 0,
      .doc = "Detector: standard deviation (0..127) of noise on half of the images."},
    K{.name = "mixup", .field = &NetSpec::mixup, .doc = "1: average pairs of images and labels."},
    K{.name = "cutmix",
      .field = &NetSpec::cutmix,
      .doc = "Classifier, 1: paste a part of another image."},
    K{.name = "mosaic",
      .field = &NetSpec::mosaic,
      .doc = "1: join four images in half of the samples."},
    K{.name = "mosaic_bound",
      .field = &NetSpec::mosaic_bound,
      .doc = "1: clip boxes to their tile of the mosaic."},
    K{.name = "label_smooth_eps",
      .field = &NetSpec::label_smooth_eps,
      .min = 0,
      .max = 1,
      .doc = "Classifier label smoothing: true class 1-eps, the others eps/(k-1)."},
    // Contrastive, tracking, adversarial, label cleaning
    K{.name = "contrastive",
      .field = &NetSpec::contrastive,
      .doc = "1: load each image twice with different augmentation."},
    K{.name = "contrastive_jit_flip",
      .field = &NetSpec::contrastive_jit_flip,
      .doc = "1: jitter and flip differ between the two copies."},
    K{.name = "contrastive_color",
      .field = &NetSpec::contrastive_color,
      .doc = "1: colour differs between the two copies."},
    K{.name = "unsupervised",
      .field = &NetSpec::unsupervised,
      .doc = "Classifier, 1: one pseudo class per image in place of labels."},
    K{.name = "track", .field = &NetSpec::track, .doc = "1: load consecutive frames per sample."},
    K{.name = "augment_speed",
      .field = &NetSpec::augment_speed,
      .otherwise = 2,
      .min = 1,
      .doc = "With track=1: random frame stride 1..augment_speed."},
    K{.name = "attention",
      .field = &NetSpec::attention,
      .doc = "1: show the input gradient of adversarial steps."},
    K{.name = "adversarial_lr",
      .field = &NetSpec::adversarial_lr,
      .min = 0,
      .doc = "Rate of self-adversarial perturbation of the input; 0: off."},
    K{.name = "equidistant_point",
      .field = &NetSpec::equidistant_point,
      .unit = "iterations",
      .doc = "From here on reject [yolo] gradients above a moving threshold; 0: off."},
    K{.name = "badlabels_rejection_percentage",
      .field = &NetSpec::badlabels_rejection_percentage,
      .min = 0,
      .max = 100,
      .unit = "%",
      .doc = "In the last quarter reject about this share of [yolo] gradients; 0: off."},
    K{.name = "num_sigmas_reject_badlabels",
      .field = &NetSpec::num_sigmas_reject_badlabels,
      .min = 0,
      .doc = "In the last quarter reject [yolo] gradients beyond mean + k * sigma; 0: off."},
    // Memory, GPU and display
    K{.name = "optimized_memory",
      .field = &NetSpec::optimized_memory,
      .min = 0,
      .max = 3,
      .doc = "Darknet's memory modes. 0, 1: device only; 2, 3: memory=auto with host memory."},
    K{.name = "workspace_size_limit_MB",
      .field = &NetSpec::workspace_size_limit_MB,
      .otherwise = 1024,
      .min = 0,
      .unit = "MiB",
      .doc = "Upper bound of the convolution workspace in the choice of algorithms."},
    K{.name = "use_cuda_graph",
      .field = &NetSpec::use_cuda_graph,
      .doc = "1: capture inference into a CUDA graph."},
    K{.name = "max_chart_loss",
      .field = &NetSpec::max_chart_loss,
      .otherwise = 20,
      .doc = "Top of the loss chart."},
    K{.name = "show_receptive_field",
      .field = &NetSpec::show_receptive_field,
      .doc = "1: print the receptive field after each layer of the table.",
      .truncates = true},
    // Ours
    K{.name = "memory",
      .field = &NetSpec::memory,
      .otherwise = "auto",
      .doc = "Device memory to use: auto, a size such as 6G, or a share such as 75%."},
    K{.name = "host_memory",
      .field = &NetSpec::host_memory,
      .otherwise = "auto",
      .doc = "Host memory for offloaded tensors: auto or a size such as 24G."},
    K{.name = "disk_memory",
      .field = &NetSpec::disk_memory,
      .otherwise = "",
      .doc = "Folder and size for tensors on disk: /path:100G.",
      .is_path = true},
    K{.name = "max_slowdown",
      .field = &NetSpec::max_slowdown,
      .otherwise = -1,
      .min = 0,
      .unit = "%",
      .doc = "Refuse plans slower than this against unlimited memory.",
      .words = kAuto},
    K{.name = "mini_batch",
      .field = &NetSpec::mini_batch,
      .min = 0,
      .max = 1 << 24,
      .unit = "images",
      .doc = "Images per pass; 0: batch / subdivisions; auto: the largest that fits.",
      .words = kAuto},
    K{.name = "seed",
      .field = &NetSpec::seed,
      .min = 0,
      .max = 9007199254740992.0,
      .doc = "The one seed of all random draws."},
    K{.name = "precision",
      .field = word_field<NetSpec, &NetSpec::precision>(),
      .otherwise = "fp32",
      .doc = "Arithmetic of convolutions.",
      .words = kPrecisions},
    K{.name = "on_nan",
      .field = word_field<NetSpec, &NetSpec::on_nan>(),
      .otherwise = "stop",
      .doc = "What a loss, gradient or weight that is not finite leads to.",
      .words = kOnNan},
    K{.name = "sampling",
      .field = word_field<NetSpec, &NetSpec::sampling>(),
      .otherwise = "epoch",
      .doc = "epoch: every image once per pass; replacement: independent draws, as Darknet.",
      .words = kSamplings},
    K{.name = "missing_labels",
      .field = word_field<NetSpec, &NetSpec::missing_labels>(),
      .otherwise = "negative",
      .doc = "An image without label file is a negative example or an error.",
      .words = kMissingLabels},
    K{.name = "bad_data_limit",
      .field = &NetSpec::bad_data_limit,
      .otherwise = 1,
      .min = 0,
      .max = 100,
      .unit = "%",
      .doc = "Share of images with unreadable data at which training stops."},
    K{.name = "exif",
      .field = word_field<NetSpec, &NetSpec::exif>(),
      .otherwise = "apply",
      .doc = "EXIF orientation of images.",
      .words = kExif},
    K{.name = "freeze_bn",
      .field = &NetSpec::freeze_bn,
      .min = 0,
      .max = 1,
      .doc =
          "1: batch normalisation uses the running statistics in training and leaves them alone."},
    K{.name = "deterministic",
      .field = &NetSpec::deterministic,
      .otherwise = 1,
      .min = 0,
      .max = 1,
      .doc = "1: only kernels with a fixed order of summation."},
    K{.name = "conv_algorithm",
      .field = word_field<NetSpec, &NetSpec::conv_algorithm>(),
      .otherwise = "auto",
      .doc = "Algorithm of convolutions; part of the numeric configuration.",
      .words = kConvAlgorithms},
    K{.name = "resize_mode",
      .field = word_field<NetSpec, &NetSpec::resize_mode>(),
      .otherwise = "darknet",
      .doc = "darknet: training and testing resize in two ways; same: both alike.",
      .words = kResizeModes},
    K{.name = "cache",
      .field = word_field<NetSpec, &NetSpec::cache>(),
      .otherwise = "none",
      .doc = "Where decoded images are kept between passes.",
      .words = kCaches},
};

// The multiple of `step` nearest to value, and the next one on the other side.
std::set<int> neighbours(int value, int step) {
  std::set<int> out;
  const int below = value / step * step;
  if (below >= step) out.insert(below);
  out.insert(below + step);
  return out;
}

void check_batch(const NetSpec& net, cfg::SectionReader& reader) {
  if (net.batch % net.subdivisions == 0) return;
  std::string pairs;
  for (const int batch : neighbours(net.batch, net.subdivisions)) {
    pairs += fmt::format("{}{}/{}", pairs.empty() ? "" : ", ", batch, net.subdivisions);
  }
  for (int above = net.subdivisions + 1; above <= net.batch; ++above) {
    if (net.batch % above != 0) continue;
    pairs += fmt::format(", {}/{}", net.batch, above);
    break;
  }
  for (int below = net.subdivisions - 1; below >= 1; --below) {
    if (net.batch % below != 0) continue;
    pairs += fmt::format(", {}/{}", net.batch, below);
    break;
  }
  reader.diagnostics().error(reader.where("batch"),
                             "[net] batch={} is not a multiple of subdivisions={} ({}); nearest "
                             "batch/subdivisions that work: {}",
                             net.batch, net.subdivisions, reader.where("subdivisions"), pairs);
}

void check_policy(const NetSpec& net, cfg::SectionReader& reader) {
  Diagnostics& diagnostics = reader.diagnostics();
  const bool stepped =
      net.policy == Policy::kSteps || (net.policy == Policy::kSgdr && !net.steps.empty());
  if (net.policy == Policy::kSteps) {
    for (const char* key : {"steps", "scales"}) {
      if (!reader.has(key)) {
        diagnostics.error(reader.where("policy"), "[net] policy=steps needs {}=", key);
      }
    }
  }
  const auto check_length = [&](const char* key, std::size_t size) {
    if (!stepped || !reader.has("steps") || !reader.has(key) || size == net.steps.size()) return;
    if (size < net.steps.size()) {
      diagnostics.error(reader.where(key),
                        "[net] {} has {} values, steps has {} ({}); give one per step", key, size,
                        net.steps.size(), reader.where("steps"));
    } else {
      diagnostics.warning(reader.where(key),
                          "[net] {} has {} values, steps has {}; the rest is ignored", key, size,
                          net.steps.size());
    }
  };
  check_length("scales", net.scales.size());
  check_length("seq_scales", net.seq_scales.size());
  if (net.policy == Policy::kStep && net.step < 1) {
    diagnostics.error(reader.where("step"), "[net] step is {}, policy=step wants >= 1", net.step);
  }
  if (net.policy == Policy::kPoly && net.max_batches < 1) {
    diagnostics.error(reader.where("policy"), "[net] policy=poly needs max_batches >= 1");
  }
  if (net.policy == Policy::kSgdr && net.sgdr_cycle < 1) {
    diagnostics.error(reader.where("policy"),
                      "[net] policy=sgdr needs sgdr_cycle or max_batches >= 1");
  }
}

void check_sizes(const NetSpec& net, cfg::SectionReader& reader) {
  Diagnostics& diagnostics = reader.diagnostics();
  const bool image = net.width > 0 && net.height > 0 && net.channels > 0;
  if (image || (net.inputs > 0 && reader.has("inputs"))) return;
  diagnostics.error(
      reader.where(),
      "[net] width={}, height={}, channels={}: give all three, or inputs= for a network "
      "without images",
      net.width, net.height, net.channels);
}

void check_memory(const NetSpec& net, cfg::SectionReader& reader) {
  const auto is_size = [](std::string_view text) {
    return text == "auto" || parse_bytes(text).has_value();
  };
  const auto is_share = [](std::string_view text) {
    if (!text.ends_with('%')) return false;
    text.remove_suffix(1);
    const auto value = parse_float(text);
    return value && *value > 0 && *value <= 100;
  };
  Diagnostics& diagnostics = reader.diagnostics();
  if (!is_size(net.memory) && !is_share(net.memory)) {
    diagnostics.error(reader.where("memory"),
                      "[net] memory is '{}', want auto, a size such as 6G or a share such as 75%",
                      net.memory);
  }
  if (!is_size(net.host_memory)) {
    diagnostics.error(reader.where("host_memory"),
                      "[net] host_memory is '{}', want auto or a size such as 24G",
                      net.host_memory);
  }
  if (net.disk_memory.empty()) return;
  const std::size_t colon = net.disk_memory.rfind(':');
  if (colon == std::string::npos || colon == 0 ||
      !parse_bytes(std::string_view(net.disk_memory).substr(colon + 1))) {
    diagnostics.error(reader.where("disk_memory"),
                      "[net] disk_memory is '{}', want FOLDER:SIZE such as /scratch:100G",
                      net.disk_memory);
  }
}

}  // namespace

const std::span<const K> kNetKeys{kNetKeyTable};

NetSpec read_net(cfg::SectionReader& reader, const Overrides& overrides) {
  NetSpec net;
  reader.read<NetSpec>(net, kNetKeys);
  if (overrides.batch) net.batch = std::max(1, *overrides.batch);
  if (overrides.subdivisions) net.subdivisions = std::max(1, *overrides.subdivisions);
  if (overrides.time_steps) net.time_steps = *overrides.time_steps;
  if (overrides.width) net.width = *overrides.width;
  if (overrides.height) net.height = *overrides.height;
  // Defaults that follow the size must follow the new one.
  if (!reader.has("max_crop")) net.max_crop = 2 * net.width;
  if (!reader.has("min_crop")) net.min_crop = net.width;
  net.time_steps = std::max(1, net.time_steps);
  net.sequential_subdivisions = std::min(net.sequential_subdivisions, net.subdivisions);
  check_batch(net, reader);
  check_sizes(net, reader);
  check_policy(net, reader);
  check_memory(net, reader);
  if (net.contrastive != 0 && net.batch / net.subdivisions == 1 && !overrides.batch) {
    reader.diagnostics().error(
        reader.where("contrastive"),
        "[net] contrastive=1 needs a mini-batch (batch / subdivisions) of 2 or more, it is 1");
  }
  return net;
}

}  // namespace lantern::layers
