#pragma once

#include <dnnl.hpp>

#include <string>
#include <vector>

#include "ops/kernel.hpp"

namespace lantern::ops::onednn {

/// The CPU engine of the library; immutable.
const dnnl::engine& engine();
/// Attribute with user-managed scratchpad: every byte a primitive needs is part of the plan.
dnnl::primitive_attr user_scratchpad();

/// Memory descriptor of an activation [N,C,H,W] in channel blocks of 1, 8 or 16.
dnnl::memory::desc data_desc(const Shape& shape, int block);

/// A memory descriptor of weights as a layout of ours.
class WeightsLayout final : public OpaqueLayout {
 public:
  explicit WeightsLayout(dnnl::memory::desc desc) : desc_(std::move(desc)) {}
  const dnnl::memory::desc& desc() const { return desc_; }
  Bytes bytes() const override { return static_cast<Bytes>(desc_.get_size()); }
  std::string describe() const override;
  bool equals(const OpaqueLayout& other) const override;
  void to_plain(const void* physical, float* plain) const override;
  void from_plain(const float* plain, void* physical) const override;

 private:
  dnnl::memory::desc desc_;
};

Layout weights_layout(const dnnl::memory::desc& desc);
const dnnl::memory::desc& desc_of(const Layout& layout);
/// The same weights in plain row-major order.
dnnl::memory::desc plain_desc(const dnnl::memory::desc& desc);

/// One primitive with its arguments; their addresses are set for every run, which allocates nothing
/// of ours. Not for several threads at once.
class Call {
 public:
  struct Argument {
    int argument;
    dnnl::memory::desc desc;  ///< of size 0: left out
  };
  Call(const dnnl::primitive& primitive, std::initializer_list<Argument> arguments);
  /// Addresses in the order of the arguments.
  void execute(std::initializer_list<void*> addresses);

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_{engine()};
  std::vector<dnnl::memory> memories_;
  std::vector<std::size_t> which_;  ///< index of the address, by memory
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Copies from one layout to another; addresses: from, to.
Call reorder_call(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

/// "ref:any" and the im2col path are the slow implementations that a better layout avoids.
int implementation_rank(const std::string& name);

}  // namespace lantern::ops::onednn
