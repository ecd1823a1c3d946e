#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ops/activation/activation.hpp"

// Parameters of every cfg section, as its key table fills them. Meaning, default and range of a
// member are in the table of the same name (layers/<section>.cpp); a member that has the name of
// its key says no more here. Flags are ints, as in the file. Layer numbers are as written;
// Layer::sources holds them resolved.
namespace lantern::layers {

using ops::Activation;

/// Of the learning rate; kCosine is ours: sgdr with a single cycle of max_batches.
enum class Policy { kConstant, kStep, kSteps, kExp, kPoly, kRandom, kSigmoid, kSgdr, kCosine };
enum class Precision { kFp32, kBf16, kTf32, kFp16 };
enum class OnNan { kStop, kSkip, kRollback };
enum class Sampling { kEpoch, kReplacement };
enum class MissingLabels { kNegative, kError };
enum class Exif { kApply, kIgnore };
enum class ConvAlgorithm { kAuto, kDirect, kWinograd };
enum class ResizeMode { kDarknet, kSame };
enum class Cache { kNone, kRam, kDisk };

enum class WeightsType { kNone, kPerFeature, kPerChannel };
enum class WeightsNormalization { kNone, kRelu, kSoftmax };
enum class CostType { kSse, kMasked, kSmooth };
enum class IouLoss { kIou, kGiou, kMse, kDiou, kCiou };  // numbers as in Darknet's layer table
enum class IouGrad { kDarknet, kExact };
enum class NmsKind { kDefault, kGreedy, kDiou, kCorners };
enum class YoloPoint { kCenter, kLeftTop, kRightBottom };

/// [net]. width, height, channels, batch and subdivisions are after Overrides.
struct NetSpec {
  // Batching and time
  int batch = 1, subdivisions = 1, time_steps = 1, sequential_subdivisions = 1,
      dynamic_minibatch = 0;
  int max_batches = 0;
  // Input geometry
  int width = 0, height = 0, channels = 0, inputs = 0, max_crop = 0, min_crop = 0, resize_step = 32;
  int letter_box = 0;
  // Optimiser
  float learning_rate = 0, learning_rate_min = 0, momentum = 0, decay = 0;
  int adam = 0;
  float B1 = 0, B2 = 0, eps = 0, loss_scale = 1;
  int try_fix_nan = 0;
  float ema_alpha = 0;
  int weights_reject_freq = 0;
  // Learning-rate policy
  Policy policy = Policy::kConstant;
  int burn_in = 0;
  float power = 4;
  int step = 1;
  float scale = 1;
  std::vector<int> steps;
  std::vector<float> scales, seq_scales;  ///< empty, or at least as long as steps
  float gamma = 1;
  int sgdr_cycle = 0, sgdr_mult = 2;
  // Augmentation
  float angle = 0, aspect = 1, saturation = 1, exposure = 1, hue = 0;
  int flip = 1, blur = 0, gaussian_noise = 0, mixup = 0, cutmix = 0, mosaic = 0, mosaic_bound = 0;
  float label_smooth_eps = 0;
  // Contrastive, tracking, adversarial, label cleaning
  int contrastive = 0, contrastive_jit_flip = 0, contrastive_color = 0, unsupervised = 0, track = 0;
  int augment_speed = 2, attention = 0;
  float adversarial_lr = 0;
  int equidistant_point = 0;
  float badlabels_rejection_percentage = 0, num_sigmas_reject_badlabels = 0;
  // Memory, GPU and display
  int optimized_memory = 0;
  float workspace_size_limit_MB = 1024;
  int use_cuda_graph = 0;
  float max_chart_loss = 20;
  int show_receptive_field = 0;
  // Ours
  std::string memory, host_memory, disk_memory;     ///< sizes as written
  std::string host_memory_where, mini_batch_where;  ///< file and line of the keys, when given
  float max_slowdown = -1;                          ///< percent; -1 = auto
  int mini_batch = 0;                               ///< 0 = batch / subdivisions, -1 = auto
  std::int64_t seed = 0;
  Precision precision = Precision::kFp32;
  OnNan on_nan = OnNan::kStop;
  Sampling sampling = Sampling::kEpoch;
  MissingLabels missing_labels = MissingLabels::kNegative;
  float bad_data_limit = 1;  ///< percent of the images
  Exif exif = Exif::kApply;
  int freeze_bn = 0, deterministic = 1;
  ConvAlgorithm conv_algorithm = ConvAlgorithm::kAuto;
  ResizeMode resize_mode = ResizeMode::kDarknet;
  Cache cache = Cache::kNone;
};

/// Keys of every layer section (cfg.md 4).
struct CommonSpec {
  float clip = 0;
  int onlyforward = 0, dont_update = 0, burnin_update = 0, stopbackward = 0, train_only_bn = 0;
  int dontload = 0, dontloadscales = 0;
  float learning_rate = 1;
};

struct ConvolutionalSpec {
  int filters = 1, groups = 1, size = 1, stride = 1, stride_x = 1, stride_y = 1, dilation = 1;
  int pad = 0, padding = 0;  ///< padding: cells per side (pad already folded in); really applied:
                             ///< padding * dilation
  Activation activation = Activation::kLogistic;
  int batch_normalize = 0;  ///< 0 none, 1 batch normalisation, 2 across iterations (cbn folded in)
  int cbn = 0, antialiasing = 0;
  std::optional<int> share_index;
  int binary = 0, xnor = 0, bin_output = 0, assisted_excitation = 0;
  int sway = 0, rotate = 0, stretch = 0, stretch_sway = 0;
  float angle = 15;
  int grad_centr = 0;
  float reverse = 0;
  int coordconv = 0, flipped = 0;
  float dot = 0;
  int stream = -1, wait_stream = -1;
};

struct MaxpoolSpec {
  int stride = 1, stride_x = 1, stride_y = 1, size = 1;
  int padding = 0;  ///< both sides together; left/top part is padding / 2
  int maxpool_depth = 0, out_channels = 1, antialiasing = 0, maxpool_zero_nonmax = 0;
};

struct LocalAvgpoolSpec {
  int stride = 1, stride_x = 1, stride_y = 1, size = 1, padding = 0;  ///< padding as in MaxpoolSpec
};

struct AvgpoolSpec {};

struct RouteSpec {
  std::vector<int> layers;
  int groups = 1, group_id = 0, stream = -1, wait_stream = -1;
};

struct ShortcutSpec {
  std::vector<int> from;
  Activation activation = Activation::kLinear;
  WeightsType weights_type = WeightsType::kNone;
  WeightsNormalization weights_normalization = WeightsNormalization::kNone;
};

struct ScaleChannelsSpec {
  int from = 0, scale_wh = 0;
  Activation activation = Activation::kLinear;
};

struct SamSpec {
  int from = 0;
  Activation activation = Activation::kLinear;
};

struct UpsampleSpec {
  int stride = 2;  ///< negative: sum-pooling by -stride
  float scale = 1;
};

struct Reorg3dSpec {
  int stride = 1, reverse = 0;
};

struct ReorgSpec {
  int stride = 1, reverse = 0;
};

struct DropoutSpec {
  float probability = 0.2F;
  int dropblock = 0;
  float dropblock_size_rel = 0;
  int dropblock_size_abs = 0;
};

struct BatchnormSpec {};

struct ConnectedSpec {
  int output = 1;
  Activation activation = Activation::kLogistic;
  int batch_normalize = 0;
};

struct ActivationSpec {
  Activation activation = Activation::kLinear;
};

struct SoftmaxSpec {
  int groups = 1;
  float temperature = 1;
  std::string tree;
  int spatial = 0, noloss = 0;
};

struct CostSpec {
  CostType type = CostType::kSse;
  float scale = 1, ratio = 0;
};

struct CropSpec {
  int crop_height = 1, crop_width = 1, flip = 0;
  float angle = 0, saturation = 1, exposure = 1, shift = 0;
  int noadjust = 0;
};

struct NormalizationSpec {
  float alpha = 1e-4F, beta = 0.75F, kappa = 1;
  int size = 5;
};

struct LocalSpec {
  int filters = 1, size = 1, stride = 1, pad = 0;
  Activation activation = Activation::kLogistic;
};

struct RnnSpec {
  int output = 1, hidden = 1;
  Activation activation = Activation::kLogistic;
  int batch_normalize = 0, logistic = 0, shortcut = 0;
};

struct GruSpec {
  int output = 1, batch_normalize = 0;
};

struct LstmSpec {
  int output = 1, batch_normalize = 0;
};

struct CrnnSpec {
  int output = 1, hidden = 1, size = 3, stride = 1, dilation = 1, pad = 0, padding = 0, groups = 1;
  Activation activation = Activation::kLogistic;
  int batch_normalize = 0, xnor = 0, shortcut = 0;
};

struct ConvLstmSpec {
  int output = 1, size = 3, stride = 1, dilation = 1, pad = 0, padding = 0, groups = 1;
  Activation activation = Activation::kLinear;
  int batch_normalize = 0, xnor = 0, peephole = 0, bottleneck = 0;
  int state_constrain = -1;  ///< -1: 32 * time_steps; 0: none
  int shortcut = 0;
  Activation lstm_activation = Activation::kTanh;
  float time_normalizer = 1;
};

struct HistorySpec {
  int history_size = 4;
};

struct ImplicitSpec {
  float mean = 0, std = 0.2F;
  int filters = 128, atoms = 1;
};

struct EmptySpec {};

/// What [yolo] and [Gaussian_yolo] share. After loading, mask is never empty, anchors has 2 * num
/// values.
struct HeadSpec {
  int classes = 20, num = 1;
  std::vector<int> mask;
  std::vector<float> anchors;  ///< w, h pairs in pixels of the network input
  int max = 200;
  float jitter = 0.2F, resize = 1, random = 0;
  float ignore_thresh = 0.5F, truth_thresh = 1, iou_thresh = 1;
  IouLoss iou_loss = IouLoss::kMse, iou_thresh_kind = IouLoss::kIou;
  float iou_normalizer = 0.75F, obj_normalizer = 1, cls_normalizer = 1, delta_normalizer = 1,
        max_delta = 0;
  std::vector<int> counters_per_class;
  float label_smooth_eps = 0;
  int objectness_smooth = 0;
  float scale_x_y = 1;
  NmsKind nms_kind = NmsKind::kDefault;
  float beta_nms = 0.6F;
  std::string map;
  IouGrad iou_grad = IouGrad::kDarknet;  // ours
  int cls_normalizer_all = 0;            // ours
};

struct YoloSpec : HeadSpec {
  int focal_loss = 0, new_coords = 0, show_details = 1;
  std::optional<int> embedding_layer;
  int track_history_size = 5;
  float sim_thresh = 0.8F;
  int dets_for_track = 1, dets_for_show = 1;
  float track_ciou_norm = 0.01F;
};

struct GaussianYoloSpec : HeadSpec {
  float uc_normalizer = 1;
  YoloPoint yolo_point = YoloPoint::kCenter;
};

struct RegionSpec {
  int classes = 20, num = 1, coords = 4;
  std::vector<float> anchors;  ///< 2 * num values after loading: w, h pairs in grid cells
  int max = 200, softmax = 0;
  std::string tree, map;
  float jitter = 0.2F, resize = 1, random = 0, thresh = 0.5F;
  int rescore = 0, bias_match = 0, classfix = 0, focal_loss = 0;
  float coord_scale = 1, object_scale = 1, noobject_scale = 1, class_scale = 1, mask_scale = 1;
  int absolute = 0, log = 0, sqrt = 0;
};

struct DetectionSpec {
  int classes = 1, coords = 1, num = 1, side = 7, rescore = 0, softmax = 0, sqrt = 0, max = 200;
  float jitter = 0.2F, resize = 1, random = 0;
  int forced = 0;
  float coord_scale = 1, object_scale = 1, noobject_scale = 1, class_scale = 1;
  int reorg = 0;
};

struct ContrastiveSpec {
  int classes = 1000;
  std::optional<int> yolo_layer;  ///< 0 is the same as absent
  float temperature = 1, cls_normalizer = 1, max_delta = 0;
  int contrastive_neg_max = 3;
};

using Spec =
    std::variant<ConvolutionalSpec, MaxpoolSpec, LocalAvgpoolSpec, AvgpoolSpec, RouteSpec,
                 ShortcutSpec, ScaleChannelsSpec, SamSpec, UpsampleSpec, Reorg3dSpec, ReorgSpec,
                 DropoutSpec, BatchnormSpec, ConnectedSpec, ActivationSpec, SoftmaxSpec, CostSpec,
                 CropSpec, NormalizationSpec, LocalSpec, RnnSpec, GruSpec, LstmSpec, CrnnSpec,
                 ConvLstmSpec, HistorySpec, ImplicitSpec, EmptySpec, YoloSpec, GaussianYoloSpec,
                 RegionSpec, DetectionSpec, ContrastiveSpec>;

}  // namespace lantern::layers
