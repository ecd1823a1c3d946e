#include <array>

#include "ops/activation/activation_op.hpp"
#include "ops/add/add.hpp"
#include "ops/add/weighted_add.hpp"
#include "ops/avg_pool/avg_pool.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/batch_norm/batch_norm_cpu.hpp"
#include "ops/batch_norm/batch_norm_pool.hpp"
#include "ops/batch_norm/cross_batch.hpp"
#include "ops/concat/concat.hpp"
#include "ops/conv/bias_gradient_cpu.hpp"
#include "ops/conv/conv.hpp"
#include "ops/conv/conv_onednn.hpp"
#include "ops/cost/cost.hpp"
#include "ops/dropout/drop_block.hpp"
#include "ops/dropout/dropout.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/kernel.hpp"
#include "ops/linear/linear.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/max_pool/max_pool_depth.hpp"
#include "ops/region/region.hpp"
#include "ops/reorg/reorg.hpp"
#include "ops/scale/scale.hpp"
#include "ops/sgd/sgd.hpp"
#include "ops/softmax/softmax.hpp"
#include "ops/upsample/upsample.hpp"
#include "ops/yolo_loss/yolo_op.hpp"

namespace lantern::ops {

std::span<const KernelEntry> kernel_table() {
  static const std::array kTable{
      KernelEntry{&kActivationBackward, choose_activation_backward},
      KernelEntry{&kActivationForward, choose_activation_forward},
      KernelEntry{&kAdamStep, choose_adam_step},
      KernelEntry{&kAddBackward, choose_add_backward},
      KernelEntry{&kAddForward, choose_add_forward},
      KernelEntry{&kAddParameterGradient, choose_add_parameter_gradient},
      KernelEntry{&kBatchNormApply, choose_batch_norm_apply},
      KernelEntry{&kBatchNormBackwardApply, choose_batch_norm_backward_apply},
      KernelEntry{&kBatchNormBackwardReduce, choose_batch_norm_backward_reduce},
      KernelEntry{&kBatchNormPool, choose_batch_norm_pool},
      KernelEntry{&kBatchNormPoolBackwardApply, choose_batch_norm_pool_backward_apply},
      KernelEntry{&kBatchNormPoolBackwardReduce, choose_batch_norm_pool_backward_reduce},
      KernelEntry{&kBatchNormRolling, choose_batch_norm_rolling},
      KernelEntry{&kBatchNormStatistics, choose_batch_norm_statistics},
      KernelEntry{&kBiasGradient, choose_bias_gradient},
      KernelEntry{&kClampGradient, choose_clamp_gradient},
      KernelEntry{&kClampGradientBackward, choose_clamp_gradient_backward},
      KernelEntry{&kConcatBackward, choose_concat_backward},
      KernelEntry{&kConcatForward, choose_concat_forward},
      KernelEntry{&kConvBackwardData, choose_conv_backward_data},
      KernelEntry{&kConvBackwardWeights, choose_conv_backward_weights},
      KernelEntry{&kConvForward, choose_conv_forward},
      KernelEntry{&kCopy, choose_copy},
      KernelEntry{&kCostBackward, choose_cost_backward},
      KernelEntry{&kCostLoss, choose_cost_loss},
      KernelEntry{&kCrossBatchMerge, choose_cross_batch_merge},
      KernelEntry{&kDepthPoolBackward, choose_depth_pool_backward},
      KernelEntry{&kDepthPoolForward, choose_depth_pool_forward},
      KernelEntry{&kDropBlockBackward, choose_drop_block_backward},
      KernelEntry{&kDropBlockForward, choose_drop_block_forward},
      KernelEntry{&kDropoutBackward, choose_dropout_backward},
      KernelEntry{&kDropoutForward, choose_dropout_forward},
      KernelEntry{&kFiniteCheck, choose_finite_check},
      KernelEntry{&kGaussianForward, choose_gaussian_forward},
      KernelEntry{&kGaussianLoss, choose_gaussian_loss},
      KernelEntry{&kGlobalAvgPoolBackward, choose_global_avg_pool_backward},
      KernelEntry{&kGlobalAvgPoolForward, choose_global_avg_pool_forward},
      KernelEntry{&kLinearBackwardData, choose_linear_backward_data},
      KernelEntry{&kLinearBackwardWeights, choose_linear_backward_weights},
      KernelEntry{&kLinearForward, choose_linear_forward},
      KernelEntry{&kLocalAvgPoolBackward, choose_local_avg_pool_backward},
      KernelEntry{&kLocalAvgPoolForward, choose_local_avg_pool_forward},
      KernelEntry{&kMaxPoolBackward, choose_max_pool_backward},
      KernelEntry{&kMaxPoolForward, choose_max_pool_forward},
      KernelEntry{&kRegionForward, choose_region_forward},
      KernelEntry{&kRegionLoss, choose_region_loss},
      KernelEntry{&kReorgBackward, choose_reorg_backward},
      KernelEntry{&kReorgForward, choose_reorg_forward},
      KernelEntry{&kScaleBackwardScale, choose_scale_backward_scale},
      KernelEntry{&kScaleBackwardSource, choose_scale_backward_source},
      KernelEntry{&kScaleForward, choose_scale_forward},
      KernelEntry{&kSgdStep, choose_sgd_step},
      KernelEntry{&kSoftmaxForward, choose_softmax_forward},
      KernelEntry{&kSoftmaxLoss, choose_softmax_loss},
      KernelEntry{&kUpsampleBackward, choose_upsample_backward},
      KernelEntry{&kUpsampleForward, choose_upsample_forward},
      KernelEntry{&kWeightedAddBackwardSource, choose_weighted_add_backward_source},
      KernelEntry{&kWeightedAddBackwardWeights, choose_weighted_add_backward_weights},
      KernelEntry{&kWeightedAddForward, choose_weighted_add_forward},
      KernelEntry{&kYoloForward, choose_yolo_forward},
      KernelEntry{&kYoloLoss, choose_yolo_loss},
  };
  return kTable;
}

}  // namespace lantern::ops
