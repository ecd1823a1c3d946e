#include <array>

#include "ops/activation/activation_op.hpp"
#include "ops/add/add.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/batch_norm/batch_norm_cpu.hpp"
#include "ops/concat/concat.hpp"
#include "ops/conv/bias_gradient_cpu.hpp"
#include "ops/conv/conv.hpp"
#include "ops/conv/conv_onednn.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/kernel.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/sgd/sgd.hpp"
#include "ops/upsample/upsample.hpp"
#include "ops/yolo_loss/yolo_op.hpp"

namespace lantern::ops {

std::span<const KernelEntry> kernel_table() {
  static const std::array kTable{
      KernelEntry{&kActivationBackward, choose_activation_backward},
      KernelEntry{&kActivationForward, choose_activation_forward},
      KernelEntry{&kAddBackward, choose_add_backward},
      KernelEntry{&kAddForward, choose_add_forward},
      KernelEntry{&kAddParameterGradient, choose_add_parameter_gradient},
      KernelEntry{&kBatchNormApply, choose_batch_norm_apply},
      KernelEntry{&kBatchNormBackwardApply, choose_batch_norm_backward_apply},
      KernelEntry{&kBatchNormBackwardReduce, choose_batch_norm_backward_reduce},
      KernelEntry{&kBatchNormRolling, choose_batch_norm_rolling},
      KernelEntry{&kBatchNormStatistics, choose_batch_norm_statistics},
      KernelEntry{&kBiasGradient, choose_bias_gradient},
      KernelEntry{&kConcatBackward, choose_concat_backward},
      KernelEntry{&kConcatForward, choose_concat_forward},
      KernelEntry{&kConvBackwardData, choose_conv_backward_data},
      KernelEntry{&kConvBackwardWeights, choose_conv_backward_weights},
      KernelEntry{&kConvForward, choose_conv_forward},
      KernelEntry{&kCopy, choose_copy},
      KernelEntry{&kFiniteCheck, choose_finite_check},
      KernelEntry{&kMaxPoolBackward, choose_max_pool_backward},
      KernelEntry{&kMaxPoolForward, choose_max_pool_forward},
      KernelEntry{&kSgdStep, choose_sgd_step},
      KernelEntry{&kUpsampleBackward, choose_upsample_backward},
      KernelEntry{&kUpsampleForward, choose_upsample_forward},
      KernelEntry{&kYoloForward, choose_yolo_forward},
      KernelEntry{&kYoloLoss, choose_yolo_loss},
  };
  return kTable;
}

}  // namespace lantern::ops
