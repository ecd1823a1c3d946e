#include "layers/compatibility.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::layers {
namespace {

constexpr Effect kSame = Effect::kAsDarknet, kOurs = Effect::kOurs, kNone = Effect::kNone,
                 kRefused = Effect::kRefused;

constexpr std::string_view kEveryActivation =
    "every activation works, with its exact gradient; in Darknet some give zeros here";
constexpr std::string_view kBitKernels = "it needs bit kernels that nothing else uses";
constexpr std::string_view kPlannedOrder = "the planner orders the layers itself";
constexpr std::string_view kUnreadThereToo = "Darknet reads it and does not use it either";
constexpr std::string_view kTrackOnly =
    "counts with track=1 only, which the verbs that train refuse";
constexpr std::string_view kContrastiveOnly = "counts with contrastive=1 only, which is refused";
constexpr std::string_view kNoVideo = "there is no video, so nothing is tracked";
constexpr std::string_view kNoBadLabelFilter = "this version has no filter for bad labels";
constexpr std::string_view kTrainedHere =
    "its parameters are trained; Darknet computes their gradients and never uses them";

constexpr std::array kNetStatuses{
    KeyStatus{"net", "", kSame},
    KeyStatus{"net", "subdivisions width height channels inputs max_crop min_crop"},
    KeyStatus{"net", "max_batches", kSame,
              "0: a classifier trains until it is interrupted; a detector is refused (Darknet: is "
              "done at once)",
              "0"},
    KeyStatus{"net",
              "resize_step learning_rate learning_rate_min momentum decay policy burn_in power"},
    KeyStatus{"net", "step scale steps scales gamma sgdr_cycle sgdr_mult saturation exposure flip"},
    KeyStatus{"net", "blur mixup cutmix mosaic mosaic_bound label_smooth_eps show_receptive_field"},
    KeyStatus{"net", "angle aspect", kSame, "of classifiers; detectors say that they ignore them"},
    KeyStatus{"net", "gaussian_noise", kSame, "of detectors; classifiers say that they ignore it"},
    KeyStatus{"net", "B1 B2 eps", kSame, "with adam=1"},
    KeyStatus{"net", "dynamic_minibatch", kSame,
              "refused in the training of [gru], [lstm] and [conv_lstm], whose state goes on from "
              "mini-batch to mini-batch"},
    KeyStatus{"net", "time_steps", kSame,
              "the verbs that train load single pictures and refuse more than 1", "2"},
    KeyStatus{"net", "sequential_subdivisions seq_scales", kSame, kTrackOnly},
    KeyStatus{"net", "batch", kOurs,
              "must be a multiple of subdivisions; Darknet drops the remainder"},
    KeyStatus{"net", "letter_box", kOurs,
              "also together with mosaic=1, which Darknet refuses; classifiers say that they "
              "ignore it"},
    KeyStatus{"net", "adam", kOurs, "moves every parameter, in Darknet those of convolutions only"},
    KeyStatus{"net", "hue", kOurs, "the hue wraps around; in Darknet it stops at 0"},
    KeyStatus{"net", "max_chart_loss", kOurs, "a loss above it makes the axis logarithmic"},
    KeyStatus{"net", "optimized_memory", kOurs,
              "1, 2 and 3 mean memory=auto; results do not depend on it"},
    KeyStatus{"net", "memory disk_memory max_slowdown mini_batch seed sampling missing_labels",
              kOurs, "not in Darknet"},
    KeyStatus{"net", "bad_data_limit exif", kOurs, "not in Darknet"},
    KeyStatus{"net", "on_nan", kOurs, "not in Darknet"},
    KeyStatus{"net", "ema_alpha", kOurs,
              "the averages are in the state file too, so -resume goes on with them"},
    KeyStatus{"net", "workspace_size_limit_MB", kNone,
              "bounds the choice of a card's convolutions; said at the start"},
    KeyStatus{"net", "try_fix_nan", kNone,
              "values are not replaced: on_nan= says what a NaN leads to; said at the start"},
    KeyStatus{"net", "use_cuda_graph", kNone, "there are no cards in this version"},
    KeyStatus{"net", "contrastive_jit_flip contrastive_color", kNone, kContrastiveOnly},
    KeyStatus{"net", "augment_speed", kNone, kTrackOnly},
    KeyStatus{"net", "attention", kNone,
              "shows the gradient of adversarial passes, of which there are none"},
    KeyStatus{"net", "deterministic", kNone, "not in Darknet; sums always have a fixed order"},
    KeyStatus{"net", "cache", kNone,
              "not in Darknet; images are decoded anew each time, said at the start"},
    KeyStatus{
        "net", "conv_algorithm", kNone,
        "not in Darknet; kernels are chosen by shape, and results of winograd would depend on "
        "how many images one call has: it is refused",
        "winograd"},
    KeyStatus{"net", "precision", kRefused, "this version computes in fp32", "bf16"},
    KeyStatus{"net", "host_memory", kRefused, "memory behind a card, which there is none of", "1G"},
    KeyStatus{"net", "resize_mode", kRefused,
              "training and testing resize as Darknet does, each in its own way", "same"},
    KeyStatus{"net", "freeze_bn", kRefused, "batch normalisation always learns in this version",
              "1"},
    KeyStatus{"net", "loss_scale", kRefused,
              "it is for mixed precision, and this version trains in fp32", "128"},
    KeyStatus{"net", "weights_reject_freq", kRefused, "filters are not drawn anew in this version",
              "100"},
    KeyStatus{"net", "contrastive", kRefused,
              "this version does not load every picture twice; without the key, [contrastive] "
              "compares what a mini-batch holds",
              "1"},
    KeyStatus{"net", "unsupervised", kRefused, "images are trained on with their own classes only",
              "1"},
    KeyStatus{"net", "track", kRefused,
              "the verbs that train load single pictures, no sequences of frames", "1"},
    KeyStatus{"net", "adversarial_lr", kRefused, "there is no adversarial pass in this version",
              "0.05"},
    KeyStatus{"net", "equidistant_point", kRefused, kNoBadLabelFilter, "1000"},
    KeyStatus{"net", "badlabels_rejection_percentage", kRefused, kNoBadLabelFilter, "0.2"},
    KeyStatus{"net", "num_sigmas_reject_badlabels", kRefused, kNoBadLabelFilter, "3"},
};

// The same keys of [yolo] and [Gaussian_yolo].
constexpr std::string_view kHeadKeys1 =
    "classes num mask anchors max jitter resize random ignore_thresh truth_thresh iou_thresh "
    "iou_loss iou_thresh_kind iou_normalizer obj_normalizer cls_normalizer delta_normalizer";
constexpr std::string_view kHeadKeys2 =
    "max_delta counters_per_class label_smooth_eps objectness_smooth scale_x_y nms_kind beta_nms "
    "map";

constexpr std::array kLayerStatuses{
    KeyStatus{"every layer", "", kSame},
    KeyStatus{"every layer", "clip onlyforward dont_update burnin_update train_only_bn"},
    KeyStatus{"every layer", "dontload dontloadscales"},
    KeyStatus{"every layer", "stopbackward", kOurs,
              "frozen layers stay as they are; in Darknet decay and old momentum move them"},
    KeyStatus{"every layer", "learning_rate", kOurs, "also inside recurrent layers"},

    KeyStatus{"convolutional", "", kSame},
    KeyStatus{"convolutional", "filters groups size stride stride_x stride_y dilation pad padding"},
    KeyStatus{"convolutional", "batch_normalize cbn share_index sway rotate stretch angle flipped"},
    KeyStatus{"convolutional", "reverse", kSame, "refused together with [net] adam=1"},
    KeyStatus{"convolutional", "activation", kOurs,
              "the gradients of gelu and of the normalize_channels kinds are exact"},
    KeyStatus{"convolutional", "antialiasing", kOurs,
              "a [route] or [shortcut] of the layer sees the blurred map"},
    KeyStatus{"convolutional", "assisted_excitation", kOurs,
              "reads all of a true box; Darknet takes five of its six numbers"},
    KeyStatus{"convolutional", "stretch_sway", kOurs,
              "averages all eight parts; Darknet four of them"},
    KeyStatus{"convolutional", "grad_centr", kOurs,
              "filters of any size; in Darknet those of a multiple of 32 weights"},
    KeyStatus{"convolutional", "coordconv", kOurs,
              "channels 0 to 2 become x, y and radius; Darknet writes to wrong cells"},
    KeyStatus{"convolutional", "bin_output", kNone, "belongs to xnor=1, which is refused"},
    KeyStatus{"convolutional", "dot", kNone, kUnreadThereToo},
    KeyStatus{"convolutional", "stream wait_stream", kNone, kPlannedOrder},
    KeyStatus{"convolutional", "binary", kRefused, kBitKernels, "1"},
    KeyStatus{"convolutional", "xnor", kRefused, kBitKernels, "1"},

    KeyStatus{"maxpool", "", kSame},
    KeyStatus{"maxpool", "stride stride_x stride_y size padding maxpool_depth out_channels"},
    KeyStatus{"maxpool", "maxpool_zero_nonmax"},
    KeyStatus{"maxpool", "antialiasing", kOurs,
              "a [route] or [shortcut] of the layer sees the blurred map"},

    KeyStatus{"local_avgpool", "", kOurs,
              "the gradient is divided by the cells of the window that lie in the map"},
    KeyStatus{"local_avgpool", "stride stride_x stride_y size padding"},

    KeyStatus{"avgpool", "", kSame},

    KeyStatus{"route", "", kSame, "maps of different width or height are refused"},
    KeyStatus{"route", "layers groups group_id"},
    KeyStatus{"route", "stream wait_stream", kNone, kPlannedOrder},

    KeyStatus{"shortcut", "", kSame},
    KeyStatus{"shortcut", "weights_type"},
    KeyStatus{"shortcut", "from", kOurs,
              "maps of another size are added in steps, as the first Darknet did; later ones stop"},
    KeyStatus{"shortcut", "activation", kOurs, kEveryActivation},
    KeyStatus{"shortcut", "weights_normalization", kOurs, "with the exact gradient"},

    KeyStatus{"scale_channels", "", kSame},
    KeyStatus{"scale_channels", "from"},
    KeyStatus{"scale_channels", "scale_wh", kOurs,
              "with the exact gradient; Darknet divides it by the size of the map"},
    KeyStatus{"scale_channels", "activation", kOurs, kEveryActivation},

    KeyStatus{"sam", "", kSame},
    KeyStatus{"sam", "from"},
    KeyStatus{"sam", "activation", kOurs, kEveryActivation},

    KeyStatus{"upsample", "", kSame},
    KeyStatus{"upsample", "stride scale"},

    KeyStatus{"reorg3d", "", kSame},
    KeyStatus{"reorg3d", "stride"},
    KeyStatus{"reorg3d", "reverse", kOurs, "the inverse of the plain form, which Darknet's is not"},

    KeyStatus{"reorg", "", kSame},
    KeyStatus{"reorg", "stride reverse"},

    KeyStatus{"dropout", "", kSame},
    KeyStatus{"dropout", "probability"},
    KeyStatus{"dropout", "dropblock dropblock_size_rel dropblock_size_abs", kOurs,
              "every image has blocks of its own, anywhere in the map; Darknet's indices are wrong "
              "from the second image on"},

    KeyStatus{"batchnorm", "", kSame},

    KeyStatus{"connected", "", kOurs, kTrainedHere},
    KeyStatus{"connected", "output batch_normalize"},
    KeyStatus{"connected", "activation", kOurs, kEveryActivation},

    KeyStatus{"activation", "", kOurs,
              "adds to the gradient of its input; Darknet overwrites that of other readers"},
    KeyStatus{"activation", "activation", kOurs, kEveryActivation},

    KeyStatus{"softmax", "", kSame},
    KeyStatus{"softmax", "groups temperature tree noloss"},
    KeyStatus{"softmax", "spatial", kOurs,
              "over the channels of every pixel; Darknet's runs out of the batch"},

    KeyStatus{"cost", "", kSame},
    KeyStatus{"cost", "type scale"},
    KeyStatus{"cost", "ratio", kNone, kUnreadThereToo},

    KeyStatus{"crop", "", kSame},
    KeyStatus{"crop", "crop_height crop_width flip angle saturation exposure shift noadjust"},

    KeyStatus{"normalization", "", kOurs,
              "sums the whole window and has its exact gradient; Darknet misses a channel"},
    KeyStatus{"normalization", "alpha beta kappa size"},

    KeyStatus{"local", "", kOurs, kTrainedHere},
    KeyStatus{"local", "filters size stride activation"},
    KeyStatus{"local", "pad", kOurs, "1 with size=3 only: elsewhere Darknet contradicts itself"},

    KeyStatus{"rnn", "", kOurs, kTrainedHere},
    KeyStatus{"rnn", "output hidden activation batch_normalize logistic shortcut"},

    KeyStatus{"gru", "", kOurs, kTrainedHere},
    KeyStatus{"gru", "output batch_normalize"},

    KeyStatus{"lstm", "", kOurs, kTrainedHere},
    KeyStatus{"lstm", "output batch_normalize"},

    KeyStatus{"crnn", "", kSame},
    KeyStatus{"crnn", "output hidden size stride dilation pad padding groups activation"},
    KeyStatus{"crnn", "batch_normalize shortcut"},
    KeyStatus{"crnn", "xnor", kRefused, kBitKernels, "1"},

    KeyStatus{"conv_lstm", "", kOurs,
              "the gradient passes through all time steps; Darknet drops that of the hidden state"},
    KeyStatus{"conv_lstm", "output size stride dilation pad padding groups activation"},
    KeyStatus{"conv_lstm", "batch_normalize peephole state_constrain"},
    KeyStatus{"conv_lstm", "lstm_activation", kOurs, "any activation"},
    KeyStatus{"conv_lstm", "bottleneck", kOurs,
              "joins state and input of each image; Darknet mixes images"},
    KeyStatus{"conv_lstm", "shortcut", kSame, "refused without bottleneck=1, which it needs", "1"},
    KeyStatus{"conv_lstm", "time_normalizer", kSame,
              "refused in training without bottleneck=1, which it needs", "0.5"},
    KeyStatus{"conv_lstm", "xnor", kRefused, kBitKernels, "1"},

    KeyStatus{"history", "", kOurs,
              "frames before the first are zero; with time_steps=1 Darknet leaves them unset"},
    KeyStatus{"history", "history_size"},

    KeyStatus{"implicit", "", kOurs, kTrainedHere},
    KeyStatus{"implicit", "mean std filters atoms"},

    KeyStatus{"empty", "", kSame},

    KeyStatus{"yolo", "", kSame},
    KeyStatus{"yolo", kHeadKeys1},
    KeyStatus{"yolo", kHeadKeys2},
    KeyStatus{"yolo", "focal_loss new_coords show_details"},
    KeyStatus{"yolo", "embedding_layer", kSame, "for [contrastive]; nothing is tracked"},
    KeyStatus{"yolo", "iou_grad cls_normalizer_all", kOurs, "not in Darknet"},
    KeyStatus{"yolo", "track_history_size sim_thresh dets_for_track dets_for_show track_ciou_norm",
              kNone, kNoVideo},

    KeyStatus{"Gaussian_yolo", "", kSame},
    KeyStatus{"Gaussian_yolo", kHeadKeys1},
    KeyStatus{"Gaussian_yolo", kHeadKeys2},
    KeyStatus{"Gaussian_yolo", "uc_normalizer yolo_point"},
    KeyStatus{"Gaussian_yolo", "cls_normalizer_all", kOurs, "not in Darknet"},
    KeyStatus{"Gaussian_yolo", "iou_grad", kRefused,
              "not in Darknet; exact is there in [yolo] only", "exact"},

    KeyStatus{"region", "", kSame},
    KeyStatus{"region", "classes num coords anchors max softmax tree map jitter resize random"},
    KeyStatus{"region", "thresh rescore bias_match classfix focal_loss coord_scale object_scale"},
    KeyStatus{"region", "noobject_scale class_scale"},
    KeyStatus{"region", "mask_scale absolute log sqrt", kNone, kUnreadThereToo},

    KeyStatus{"detection", "", kSame},
    KeyStatus{"detection", "classes num side rescore softmax sqrt max jitter resize forced"},
    KeyStatus{"detection", "coord_scale object_scale noobject_scale class_scale"},
    KeyStatus{"detection", "coords", kSame, "a box has 4; other numbers are refused", "5"},
    KeyStatus{"detection", "random", kOurs,
              "draws the box of a cell; the size of the network stays as it is"},
    KeyStatus{"detection", "reorg", kNone, kUnreadThereToo},

    KeyStatus{"contrastive", "", kSame},
    KeyStatus{"contrastive", "classes yolo_layer temperature cls_normalizer max_delta"},
    KeyStatus{"contrastive", "contrastive_neg_max"},
};

constexpr auto kStatuses = [] {
  std::array<KeyStatus, kNetStatuses.size() + kLayerStatuses.size()> all{};
  std::copy(kLayerStatuses.begin(), kLayerStatuses.end(),
            std::copy(kNetStatuses.begin(), kNetStatuses.end(), all.begin()));
  return all;
}();

}  // namespace

std::string_view to_string(Effect effect) {
  switch (effect) {
    case Effect::kAsDarknet:
      return "as Darknet";
    case Effect::kOurs:
      return "ours";
    case Effect::kNone:
      return "without effect";
    case Effect::kRefused:
      return "refused";
  }
  return "?";
}

std::vector<std::string_view> KeyStatus::names() const {
  return keys.empty() ? std::vector<std::string_view>{} : split(keys, ' ');
}

std::span<const KeyStatus> key_statuses() { return kStatuses; }

const KeyStatus* find_status(std::string_view section, std::string_view key) {
  for (const KeyStatus& status : kStatuses) {
    if (status.section != section) continue;
    const std::vector<std::string_view> names = status.names();
    if (key.empty() ? names.empty() : std::ranges::find(names, key) != names.end()) return &status;
  }
  return nullptr;
}

void refuse_net_key(const std::string& where, std::string_view key) {
  const KeyStatus* status = find_status("net", key);
  LANTERN_ASSERT(status != nullptr && !status->refused.empty(), "a refused key has its row");
  // Where other values work, the one that does not is named.
  const bool all = status->effect == Effect::kRefused;
  throw Error(ErrorCode::kInvalidConfig, where,
              "error: [net] {}{} is not supported: {}; remove the key", key,
              all ? std::string() : fmt::format("={}", status->refused), status->reason);
}

}  // namespace lantern::layers
