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

/// One primitive with its arguments; addresses are fixed by bind, execute allocates nothing of
/// ours.
class Call {
 public:
  void make(const dnnl::primitive& primitive) { primitive_ = primitive; }
  void add(int argument, const dnnl::memory::desc& desc, void* address);
  void clear() {
    arguments_.clear();
    memories_.clear();
  }
  void execute();

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  dnnl::stream stream_{engine()};
};

/// "ref:any" and the im2col path are the slow implementations that a better layout avoids.
int implementation_rank(const std::string& name);

}  // namespace lantern::ops::onednn
