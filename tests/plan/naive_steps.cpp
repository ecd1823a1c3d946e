#include "plan/naive_steps.hpp"

#include <algorithm>

namespace lantern::plan::test {

namespace {

using graph::Role;
using graph::Selected;
using graph::SelectedOp;
using Piece = NaivePiece;
using Step = NaiveStep;

class Cutter {
 public:
  Cutter(const Selected& selected, Rng& rng, const NaiveOptions& options, graph::ProgramKind kind)
      : selected_(selected), rng_(rng), options_(options), kind_(kind) {}

  NaiveSteps run() {
    cut();
    make_steps();
    return std::move(result_);
  }

 private:
  bool chance(float probability) { return rng_.uniform() < probability; }
  bool persistent(std::uint32_t tensor) const {
    return graph::is_persistent(selected_.tensors[tensor].role);
  }

  void cut() {
    std::int64_t group = 1;
    result_.images = 0;
    whole_.assign(selected_.tensors.size(), false);
    for (const SelectedOp& op : selected_.ops) {
      if (op.program != kind_) continue;
      group = std::max(group, op.image_group);
      result_.images = std::max(result_.images, op.images);
      const auto touch = [&](std::uint32_t t) { whole_[t] = whole_[t] || op.images == 0; };
      std::ranges::for_each(op.reads, touch);
      std::ranges::for_each(op.writes, touch);
    }
    for (std::size_t t = 0; t < whole_.size(); ++t) {
      if (selected_.tensors[t].images == 0 || persistent(static_cast<std::uint32_t>(t)) ||
          chance(0.2F))
        whole_[t] = true;
    }
    for (std::int64_t image = group; image < result_.images; image += group) {
      if (options_.chunks && rng_.coin()) ends_.push_back(image);
    }
    ends_.push_back(result_.images);
  }

  std::size_t piece_of(std::uint32_t tensor, std::int64_t first, std::int64_t images) {
    const bool whole = whole_[tensor] || ends_.size() == 1;
    for (std::size_t i = 0; i < result_.pieces.size(); ++i) {
      if (result_.pieces[i].tensor == tensor && (whole || result_.pieces[i].first == first))
        return i;
    }
    result_.pieces.push_back(
        {.tensor = tensor, .first = whole ? 0 : first, .images = whole ? 0 : images});
    return result_.pieces.size() - 1;
  }

  void add_step(std::uint32_t index, std::int64_t first, std::int64_t images) {
    const SelectedOp& op = selected_.ops[index];
    Step step{.op = index, .first = first, .images = images};
    const int number = static_cast<int>(result_.steps.size());
    for (std::size_t i = 0; i < op.reads.size() + op.writes.size(); ++i) {
      const bool writes = i >= op.reads.size();
      const std::uint32_t tensor = writes ? op.writes[i - op.reads.size()] : op.reads[i];
      std::size_t piece = 0;
      if (selected_.tensors[tensor].role == Role::kScratch && !op.carries) {
        result_.pieces.push_back({.tensor = tensor});
        piece = result_.pieces.size() - 1;
      } else {
        piece = piece_of(tensor, first, images);
      }
      result_.pieces[piece].uses.push_back(number);
      if (writes) result_.pieces[piece].writers.push_back(number);
      step.pieces.push_back(piece);
    }
    result_.steps.push_back(std::move(step));
  }

  // An op joins the row when, chunk by chunk, it still finds what it reads.
  bool joins(const std::vector<std::uint32_t>& row, const SelectedOp& op) const {
    if (op.images == 0) return false;
    const auto undivided = [&](std::uint32_t t) { return selected_.tensors[t].images == 0; };
    for (const std::uint32_t index : row) {
      const SelectedOp& before = selected_.ops[index];
      const auto has = [](const std::vector<std::uint32_t>& v, std::uint32_t t) {
        return std::ranges::find(v, t) != v.end();
      };
      for (const std::uint32_t t : op.reads) {
        if (undivided(t) && has(before.writes, t)) return false;
      }
      for (const std::uint32_t t : op.writes) {
        if (undivided(t) && (has(before.writes, t) || has(before.reads, t))) return false;
      }
    }
    return true;
  }

  void make_steps() {
    std::vector<std::uint32_t> row;
    const auto flush = [&] {
      std::int64_t first = 0;
      for (const std::int64_t end : ends_) {
        for (const std::uint32_t index : row) add_step(index, first, end - first);
        first = end;
      }
      row.clear();
    };
    for (std::uint32_t i = 0; i < selected_.ops.size(); ++i) {
      const SelectedOp& op = selected_.ops[i];
      if (op.program != kind_) continue;
      if (!row.empty() && (!joins(row, op) || chance(0.3F))) flush();
      if (op.images == 0) {
        add_step(i, 0, 0);
      } else {
        row.push_back(i);
      }
    }
    if (!row.empty()) flush();
  }

  const Selected& selected_;
  Rng& rng_;
  NaiveOptions options_;
  graph::ProgramKind kind_;
  std::vector<bool> whole_;
  std::vector<std::int64_t> ends_;
  NaiveSteps result_;
};

}  // namespace

NaiveSteps naive_steps(const Selected& selected, Rng& rng, const NaiveOptions& options,
                       graph::ProgramKind kind) {
  return Cutter(selected, rng, options, kind).run();
}

}  // namespace lantern::plan::test
