#include "graph/random_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lantern::test {

namespace {

struct Map {
  int w, h, c;
  bool is_head = false;
  bool operator==(const Map&) const = default;
};

class Writer {
 public:
  Writer(Rng& rng, const RandomNetworkOptions& options) : rng_(rng), options_(options) {}

  std::string run() {
    int side = rng_.coin() ? 16 : 8;
    // Maps so large that sums over the mini-batch are made image by image (memory.md 4, item 6).
    const bool large = options_.everything && rng_.uniform() < 0.01F;
    if (large) side = 28;
    text_ = fmt::format(
        "[net]\nwidth={}\nheight={}\nchannels=3\nbatch={}\nsubdivisions=1\nlearning_rate=0."
        "01\nmomentum=0.9\n"
        "decay=0.0005\npolicy=constant\nmax_batches=100\n",
        side, side, options_.mini_batch);
    last_ = {side, side, 3};
    convolution(large ? 64 : pick({4, 8, 17}), 3);
    if (large) convolution(64, 3);
    for (int i = 0; i < options_.layers; ++i) step();
    head();
    if (rng_.coin()) {  // a second head on a branch from the middle
      const int from =
          static_cast<int>(rng_.uniform_int(0, static_cast<std::int64_t>(maps_.size()) - 3));
      if (!maps_[static_cast<std::size_t>(from)].is_head) {
        push(fmt::format("[route]\nlayers={}\n", from), maps_[static_cast<std::size_t>(from)]);
        convolution(pick({4, 8}), 3);
        head();
      }
    }
    return text_;
  }

 private:
  int pick(std::initializer_list<int> values) {
    return *(values.begin() + rng_.uniform_int(0, static_cast<std::int64_t>(values.size()) - 1));
  }
  std::string activation() {
    constexpr std::array kSmooth{"linear", "logistic", "tanh", "swish", "mish"};
    constexpr std::array kAll{"linear", "leaky", "relu",  "logistic",
                              "swish",  "mish",  "leaky", "leaky"};
    if (options_.smooth)
      return kSmooth[static_cast<std::size_t>(rng_.uniform_int(0, kSmooth.size() - 1))];
    return kAll[static_cast<std::size_t>(rng_.uniform_int(0, kAll.size() - 1))];
  }

  void push(const std::string& section, Map out) {
    text_ += section;
    maps_.push_back(out);
    last_ = out;
  }

  void convolution(int filters, int size) {
    const bool grouped = rng_.uniform() < 0.2F && last_.c % 2 == 0 && filters % 2 == 0;
    push(
        fmt::format(
            "[convolutional]\nbatch_normalize={}\nfilters={}\nsize={}\nstride=1\npad=1\ngroups={}\n"
            "activation={}\n",
            rng_.uniform() < 0.7F ? 1 : 0, filters, size, grouped ? 2 : 1, activation()),
        {last_.w, last_.h, filters});
  }

  /// An earlier layer that `fits`, or -1.
  template <typename Fits>
  int earlier(Fits fits) {
    std::vector<int> found;
    for (int i = 0; i + 1 < static_cast<int>(maps_.size()); ++i) {
      if (fits(maps_[static_cast<std::size_t>(i)])) found.push_back(i);
    }
    if (found.empty()) return -1;
    // Half the time the nearest: residual blocks.
    return rng_.coin() ? found.back()
                       : found[static_cast<std::size_t>(
                             rng_.uniform_int(0, static_cast<std::int64_t>(found.size()) - 1))];
  }

  void residual_blocks() {
    for (std::int64_t k = rng_.uniform_int(1, 3); k > 0; --k) {
      const Map source = last_;
      const bool two = rng_.coin();
      if (two) convolution(pick({4, 6}), 1);
      convolution(source.c, 3);
      push(fmt::format("[shortcut]\nfrom={}\nactivation={}\n", two ? -3 : -2,
                       rng_.coin() ? "linear" : activation()),
           source);
    }
  }

  // A map on two ways whose ends are joined; sometimes an end is enlarged first, or is a slice.
  void split_and_join() {
    const Map source = last_;
    const int start = static_cast<int>(maps_.size()) - 1;
    convolution(pick({16, 32}), 1);
    const int first = start + 1;
    if (rng_.coin())
      push("[route]\nlayers=-1\ngroups=2\ngroup_id=1\n", halved(last_));
    else
      push(fmt::format("[route]\nlayers={}\n", start), source);
    const bool small = !options_.smooth && source.w >= 8 && source.w % 2 == 0 && rng_.coin();
    if (small) push("[maxpool]\nsize=2\nstride=2\n", {last_.w / 2, last_.h / 2, last_.c});
    convolution(pick({8, 16}), 3);
    if (small) push("[upsample]\nstride=2\n", {source.w, source.h, last_.c});
    const int joined = maps_[static_cast<std::size_t>(first)].c + last_.c;
    push(fmt::format("[route]\nlayers={}\n",
                     rng_.coin() ? fmt::format("-1,{}", first) : fmt::format("{},-1", first)),
         {source.w, source.h, joined});
    convolution(pick({8, 16}), 1);
  }
  static Map halved(const Map& m) { return {m.w, m.h, m.c / 2}; }

  // The map times a factor of its own for every channel, made of the channels' means.
  void channel_attention() {
    const Map source = last_;
    push("[avgpool]\n", {1, 1, source.c});
    convolution(pick({3, 4}), 1);
    convolution(source.c, 1);
    push(fmt::format("[scale_channels]\nfrom=-4\nactivation={}\n",
                     rng_.coin() ? "linear" : activation()),
         source);
  }

  // The map times another one of its size.
  void pixel_attention() {
    const Map source = last_;
    convolution(source.c, 1);
    push("[sam]\nfrom=-2\n", source);
  }

  void step() {
    const auto same_map = [&](const Map& m) { return m == last_; };
    const auto same_size = [&](const Map& m) { return m.w == last_.w && m.h == last_.h; };
    switch (rng_.uniform_int(0, options_.everything ? 14 : 9)) {
      case 0:
      case 1:
        convolution(pick({4, 8, 12, 16, 17}), pick({1, 3}));
        break;
      case 2:
      case 3:
        residual_blocks();
        break;
      case 4: {
        const int from = earlier(same_map);
        if (from < 0) return convolution(last_.c, 3);
        if (rng_.uniform() < 0.3F) {  // the previous layer is another name of an older map
          const int alias = earlier(same_map);
          push(fmt::format("[route]\nlayers={}\n", alias), last_);
          if (rng_.coin()) break;
        }
        const int second = earlier(same_map);
        const bool several = second >= 0 && second != from && rng_.coin();
        push(fmt::format("[shortcut]\nfrom={}{}\nactivation={}\n", from,
                         several ? fmt::format(",{}", second) : "",
                         rng_.coin() ? "linear" : activation()),
             last_);
        break;
      }
      case 5: {
        if (rng_.coin()) return split_and_join();
        const int from = earlier(same_size);
        if (from < 0 || last_.c > 40) return convolution(6, 1);
        push(fmt::format("[route]\nlayers=-1,{}\n", from),
             {last_.w, last_.h, last_.c + maps_[static_cast<std::size_t>(from)].c});
        break;
      }
      case 6:
        // A 1x1 filter of a single channel has no gradient behind a batch norm but rounding.
        if (last_.c % 2 != 0 || last_.c < 4) return convolution(8, 1);
        push(fmt::format("[route]\nlayers=-1\ngroups=2\ngroup_id={}\n", pick({0, 1})),
             {last_.w, last_.h, last_.c / 2});
        if (rng_.coin()) convolution(pick({8, 16}), 3);
        break;
      case 7:
        if (options_.smooth) return convolution(8, 3);
        if (rng_.coin() && last_.w >= 8) {
          push("[maxpool]\nsize=2\nstride=2\n", {last_.w / 2, last_.h / 2, last_.c});
        } else {
          push("[maxpool]\nsize=3\nstride=1\n", last_);
        }
        break;
      case 8:
        if (last_.w > 8) return convolution(8, 3);
        push("[upsample]\nstride=2\n", {last_.w * 2, last_.h * 2, last_.c});
        break;
      case 10:
        push("[dropout]\nprobability=0.3\n", last_);
        break;
      case 11:
        push("[dropout]\ndropblock=1\ndropblock_size_rel=0.3\nprobability=0.1\n", last_);
        break;
      case 12:
        channel_attention();
        break;
      case 13:
        pixel_attention();
        break;
      case 14:
        if (last_.w % 2 != 0 || last_.w < 8 || last_.c > 12) return convolution(12, 3);
        push("[reorg3d]\nstride=2\n", {last_.w / 2, last_.h / 2, last_.c * 4});
        break;
      default:
        push(fmt::format("[activation]\nactivation={}\n", activation()), last_);
        break;
    }
  }

  void head() {
    constexpr int kClasses = 2;
    push(fmt::format("[convolutional]\nfilters={}\nsize=1\nstride=1\npad=1\nactivation=linear\n",
                     2 * (5 + kClasses)),
         {last_.w, last_.h, 2 * (5 + kClasses)});
    Map out = last_;
    out.is_head = true;
    push(fmt::format(
             "[yolo]\nmask=0,1\nanchors=3,4, 7,6\nclasses={}\nnum=2\nignore_thresh=.7\nmax=5\n",
             kClasses),
         out);
  }

  Rng& rng_;
  RandomNetworkOptions options_;
  std::string text_;
  std::vector<Map> maps_;
  Map last_{};
};

}  // namespace

std::string random_network(Rng& rng, const RandomNetworkOptions& options) {
  return Writer(rng, options).run();
}

}  // namespace lantern::test
