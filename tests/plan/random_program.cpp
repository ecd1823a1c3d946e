#include "plan/random_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lantern::plan::test {

using graph::ProgramKind;
using graph::Role;

std::uint32_t SelectedBuilder::tensor(const std::string& name, Role role, Bytes bytes,
                                      std::int64_t images) {
  graph::SelectedTensor tensor{.name = name, .role = role, .bytes = bytes, .layout = "raw"};
  tensor.shape = Shape{bytes};
  tensor.dtype = DType::kU8;
  tensor.images = images;
  selected_.tensors.push_back(std::move(tensor));
  return static_cast<std::uint32_t>(selected_.tensors.size() - 1);
}

graph::SelectedOp& SelectedBuilder::op(ProgramKind program, std::vector<std::uint32_t> reads,
                                       std::vector<std::uint32_t> writes,
                                       std::vector<graph::AliasHint> hints,
                                       std::vector<bool> accumulates) {
  accumulates.resize(writes.size(), false);
  selected_.ops.push_back({.op = fmt::format("op{}", selected_.ops.size()),
                           .kernel = "none",
                           .program = program,
                           .reads = std::move(reads),
                           .writes = std::move(writes),
                           .accumulates = std::move(accumulates),
                           .may_alias = std::move(hints)});
  return selected_.ops.back();
}

namespace {

class Generator {
 public:
  Generator(Rng& rng, std::int64_t images, std::int64_t maps)
      : rng_(rng),
        images_(images > 0 ? images : rng.uniform_int(1, 9)),
        maps_(maps > 0 ? maps : rng.uniform_int(4, 9)) {
    groups_ = {1, rng.coin() ? 2 : 4};
  }

  graph::Selected run() {
    input_ = tensor("images", Role::kInput, true);
    weights_ = tensor("weights", Role::kParameter, false);
    momentum_ = tensor("momentum", Role::kState, false);
    gradient_ = tensor("d_weights", Role::kParameterGradient, false);
    loss_ = tensor("loss", Role::kOutput, false);
    output_ = tensor("output", Role::kOutput, true);
    mini_batch();
    builder_.op(ProgramKind::kCheck, {gradient_}, {loss_}, {}, {true});
    builder_.op(ProgramKind::kUpdate, {gradient_, weights_}, {weights_, momentum_}, {},
                {true, true});
    builder_.op(ProgramKind::kUpdate, {momentum_}, {gradient_});
    kind_ = ProgramKind::kForward;
    sums_.clear();
    made_ = {input_};
    for (std::int64_t i = rng_.uniform_int(2, 5); i > 0; --i) add_map();
    ranged(builder_.op(kind_, {made_.back()}, {output_}));
    return builder_.build();
  }

 private:
  bool chance(float probability) { return rng_.uniform() < probability; }

  std::uint32_t tensor(const std::string& name, Role role, bool divided) {
    const std::int64_t images = divided ? images_ : 0;
    Bytes cells = chance(0.5F) ? 4 * rng_.uniform_int(1, 8) : rng_.uniform_int(1, 40);
    if (role == Role::kScratch && chance(0.1F)) cells = 0;  // a kernel that needs none
    return builder_.tensor(name, role, kCell * cells * (divided ? images_ : 1), images);
  }
  std::uint32_t next(const char* name, Role role, bool divided) {
    return tensor(fmt::format("{}{}.{}", name, count_++, to_string(kind_)), role, divided);
  }

  graph::SelectedOp& ranged(graph::SelectedOp& op, bool grouped = false) {
    op.images = images_;
    if (grouped) op.image_group = groups_[rng_.coin() ? 1 : 0];
    return op;
  }

  // Mostly the newest, as chains do.
  std::uint32_t pick() {
    const auto last = static_cast<std::int64_t>(made_.size()) - 1;
    return made_[static_cast<std::size_t>(rng_.coin() ? last : rng_.uniform_int(0, last))];
  }
  std::vector<std::uint32_t> pick_some() {
    std::vector<std::uint32_t> some{pick()};
    if (const std::uint32_t other = pick(); chance(0.4F) && other != some[0]) some.push_back(other);
    if (chance(0.4F)) some.push_back(weights_);
    if (!sums_.empty() && chance(0.5F)) some.push_back(sums_.back());
    return some;
  }
  void add_scratch(std::vector<std::uint32_t>& writes) {
    writes.push_back(next("scratch", Role::kScratch, false));
  }

  void add_map() {
    const std::vector<std::uint32_t> reads = pick_some();
    const bool whole = chance(0.15F);
    std::vector<std::uint32_t> made{next("x", Role::kActivation, true)};
    if (chance(0.25F)) made.push_back(next("x", Role::kActivation, true));
    std::vector<std::uint32_t> writes = made;
    if (chance(0.3F)) add_scratch(writes);
    std::vector<graph::AliasHint> hints;
    if (chance(0.5F)) hints.push_back({.output = 0, .input = 0});
    if (made.size() > 1 && chance(0.5F)) hints.push_back({.output = 1, .input = 0});
    graph::SelectedOp& op = builder_.op(kind_, reads, writes, hints);
    if (!whole) ranged(op);
    made_.insert(made_.end(), made.begin(), made.end());
    if (chance(0.25F)) {  // a second contribution
      const std::uint32_t from = made_[static_cast<std::size_t>(
          rng_.uniform_int(0, static_cast<std::int64_t>(made_.size() - made.size()) - 1))];
      ranged(builder_.op(kind_, {from}, {made.back()}, {}, {true}));
    }
  }

  void add_sum(bool carries) {
    std::vector<std::uint32_t> writes{next("sum", Role::kStatistic, false)};
    if (carries) add_scratch(writes);
    graph::SelectedOp& op = builder_.op(kind_, {pick()}, writes);
    op.carries = carries;
    ranged(op, true);
    sums_.push_back(writes[0]);
  }

  void mini_batch() {
    made_ = {input_};
    for (std::int64_t i = maps_; i > 0; --i) {
      add_map();
      if (chance(0.4F)) add_sum(rng_.coin());
      if (chance(0.3F)) ranged(builder_.op(kind_, {pick()}, {gradient_}, {}, {true}), true);
    }
    // Old values once more, as backward does.
    for (std::size_t i = made_.size(); i-- > 1;) {
      if (!chance(0.6F)) continue;
      const std::uint32_t newest = made_.back();
      const std::uint32_t made = next("d", Role::kGradient, true);
      std::vector<std::uint32_t> reads{newest};
      if (made_[i] != newest) reads.push_back(made_[i]);
      ranged(builder_.op(kind_, reads, {made}, {{0, 0}}));
      made_.push_back(made);
      if (chance(0.4F))
        ranged(builder_.op(kind_, {made, made_[i - 1]}, {gradient_}, {}, {true}), true);
    }
    builder_.op(kind_, {made_.back()}, {loss_}, {}, {true});
    ranged(builder_.op(kind_, {pick()}, {output_}));
  }

  Rng& rng_;
  SelectedBuilder builder_;
  std::int64_t images_, maps_;
  std::array<std::int64_t, 2> groups_{};
  ProgramKind kind_ = ProgramKind::kMiniBatch;
  std::uint32_t input_ = 0, weights_ = 0, momentum_ = 0, gradient_ = 0, loss_ = 0, output_ = 0;
  std::vector<std::uint32_t> made_, sums_;
  int count_ = 0;
};

}  // namespace

graph::Selected random_program(Rng& rng, std::int64_t images, std::int64_t maps) {
  return Generator(rng, images, maps).run();
}

}  // namespace lantern::plan::test
