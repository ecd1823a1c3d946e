#include "ops/onednn.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/select.hpp"

namespace lantern::ops {

void forget_unused_kernels() {
  const int capacity = dnnl::get_primitive_cache_capacity();
  dnnl::set_primitive_cache_capacity(0);
  dnnl::set_primitive_cache_capacity(capacity);
}

}  // namespace lantern::ops

namespace lantern::ops::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc data_desc(const Shape& shape, int block) {
  using Tag = dnnl::memory::format_tag;
  const Tag tag = block == 16 ? Tag::nChw16c : block == 8 ? Tag::nChw8c : Tag::nchw;
  return {{shape.n(), shape.c(), shape.h(), shape.w()}, dnnl::memory::data_type::f32, tag};
}

std::string WeightsLayout::describe() const {
  const dnnl_memory_desc_t& data = desc_.data;
  std::string text = "w";
  const auto& blocking = data.format_desc.blocking;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    text += fmt::format(":{}{}", static_cast<char>('a' + blocking.inner_idxs[i]),
                        blocking.inner_blks[i]);
  }
  for (int i = 0; i < data.ndims; ++i) text += fmt::format(":{}", blocking.strides[i]);
  return text;
}

bool WeightsLayout::equals(const OpaqueLayout& other) const {
  const auto* same = dynamic_cast<const WeightsLayout*>(&other);
  return same != nullptr && same->desc_ == desc_;
}

dnnl::memory::desc plain_desc(const dnnl::memory::desc& desc) {
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::dims dims = desc.dims();
  return {dims, dnnl::memory::data_type::f32, dims.size() == 5 ? Tag::abcde : Tag::abcd};
}

namespace {
void reorder(const dnnl::memory::desc& from, void* source, const dnnl::memory::desc& to,
             void* target) {
  dnnl::memory source_memory(from, engine(), source);
  dnnl::memory target_memory(to, engine(), target);
  dnnl::stream stream(engine());
  dnnl::reorder(source_memory, target_memory).execute(stream, source_memory, target_memory);
  stream.wait();
}
}  // namespace

void WeightsLayout::to_plain(const void* physical, float* plain) const {
  reorder(desc_, const_cast<void*>(physical), plain_desc(desc_), plain);
}

void WeightsLayout::from_plain(const float* plain, void* physical) const {
  reorder(plain_desc(desc_), const_cast<float*>(plain), desc_, physical);
}

Layout weights_layout(const dnnl::memory::desc& desc) {
  return {.block = 1, .opaque = std::make_shared<const WeightsLayout>(desc)};
}

const dnnl::memory::desc& desc_of(const Layout& layout) {
  const auto* weights = dynamic_cast<const WeightsLayout*>(layout.opaque.get());
  LANTERN_ASSERT(weights != nullptr, "weights of a convolution have a layout of the library");
  return weights->desc();
}

Call::Call(const dnnl::primitive& primitive, std::initializer_list<Argument> arguments)
    : primitive_(primitive) {
  std::size_t i = 0;
  for (const Argument& a : arguments) {
    if (a.desc.get_size() != 0) {
      memories_.emplace_back(a.desc, engine(), nullptr);
      arguments_.push_back({a.argument, memories_.back().get()});
      which_.push_back(i);
    }
    ++i;
  }
}

void Call::execute(std::initializer_list<void*> addresses) {
  for (std::size_t i = 0; i < memories_.size(); ++i)
    dnnl_memory_set_data_handle(memories_[i].get(), addresses.begin()[which_[i]]);
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status == dnnl_out_of_memory)
    throw Error(ErrorCode::kResource, "", "out of memory while oneDNN ran a primitive");
  if (status != dnnl_success) {
    throw Error(ErrorCode::kDevice, "", "oneDNN could not run a primitive (status {})",
                static_cast<int>(status));
  }
}

Call reorder_call(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, dnnl::primitive_attr());
  return {dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

int implementation_rank(const std::string& name) {
  if (name.starts_with("ref")) return 2;
  return name.find("gemm") != std::string::npos ? 1 : 0;
}

}  // namespace lantern::ops::onednn
