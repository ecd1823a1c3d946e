#include "ops/conv/winograd.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "ops/conv/epilogue_simd.hpp"
#include "ops/conv/winograd_tile.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"

namespace lantern::ops::winograd {

namespace {

constexpr int kTiles = 14;  // times two blocks of filters: 28 sums in 32 registers
// Channels whose transformed weights for 32 filters stay in the cache of a core.
constexpr std::int64_t kPiece = 64;
// Distances between positions of a tile are no powers of two, or all of them would meet in one set
// of the cache.
constexpr std::int64_t kSkew = 16;

using Float = Vec<kLanes>::Float;

std::int64_t panels(std::int64_t filters) { return ceil_div(filters, kPanel); }

template <int M>
constexpr std::int64_t kPositions = Tile<M>::kSide* Tile<M>::kSide;

std::int64_t position_of_weights(std::int64_t channels) { return channels * kPanel + kSkew; }
std::int64_t position_of_sources(std::int64_t channels, std::int64_t tiles) {
  return padded_to_block(channels) * tiles + kSkew;
}
std::int64_t position_of_sums(std::int64_t tiles) { return kPanel * tiles + kSkew; }

template <int M>
Schedule make_schedule(const ConvGeometry& g, int threads) {
  constexpr std::int64_t kWeightsInCache = 655360;  // floats: beyond, they are made panel by panel
  constexpr std::int64_t kSourcesInCache = 147456;  // floats
  constexpr std::int64_t kMostTiles = 112;
  Schedule s{.results = M, .rows = ceil_div(g.oh, M), .columns = ceil_div(g.ow, M)};
  const std::int64_t tiles = s.rows * s.columns;
  const std::int64_t panel = kPositions<M> * position_of_weights(padded_to_block(g.ic));
  if (panel * panels(g.oc) <= kWeightsInCache && tiles >= 2 * threads * kTiles) {
    const std::int64_t room = std::clamp(kSourcesInCache / (kPositions<M> * padded_to_block(g.ic)),
                                         std::int64_t{kTiles}, kMostTiles);
    // As many for one thread as for another.
    s.chunks = round_up(ceil_div(tiles, room), threads);
    s.chunk = ceil_div(tiles, s.chunks);
    s.chunks = ceil_div(tiles, s.chunk);
    s.piece = padded_to_block(g.ic);
    s.weights = panel * panels(g.oc);
  } else {
    s.chunk = tiles;
    s.piece = std::min(kPiece, padded_to_block(g.ic));
    s.weights = kPositions<M> * position_of_weights(s.piece);
  }
  s.sources = kPositions<M> * position_of_sources(g.ic, s.chunk);
  s.sums = kPositions<M> * position_of_sums(s.chunk);
  return s;
}

// Vector operations of one image.
template <int M>
double work(const ConvGeometry& g) {
  const auto tiles = static_cast<double>(ceil_div(g.oh, M) * ceil_div(g.ow, M));
  const auto channels = static_cast<double>(padded_to_block(g.ic));
  const double blocks = channels / kLanes;
  const double filters = static_cast<double>(padded_to_block(g.oc)) / kLanes;
  constexpr double kWaiting = 1.12;  // of the products, for loads
  return tiles * (kWaiting * kPositions<M> * channels * filters + Tile<M>::kSourceWork * blocks +
                  Tile<M>::kSumWork * filters) +
         Tile<M>::kWeightsWork * channels * filters;
}

double direct_work(const ConvGeometry& g) {
  return static_cast<double>(kTaps * padded_to_block(g.ic) * g.oh * g.ow) *
         static_cast<double>(padded_to_block(g.oc)) / kLanes;
}

// Sums of R tiles and W channel blocks at one position: m[w][r] (+)= sum over c of v[c][r] u[c][w].
// `u` is [blocks * 16][W * 16], `v` [blocks][..][16] with `v_block` from block to block.
template <int R, int W>
void multiply(const float* u, const float* v, std::int64_t blocks, std::int64_t v_block, float* m,
              std::int64_t m_block, bool adds) {
  Float sums[R][W];
  for (int r = 0; r < R; ++r) {
    for (int w = 0; w < W; ++w)
      sums[r][w] = adds ? load<kLanes>(m + w * m_block + r * kLanes) : Float{};
  }
  for (std::int64_t block = 0; block < blocks; ++block, v += v_block) {
    for (int lane = 0; lane < kLanes; ++lane, u += W * kLanes) {
      Float weights[W];
      for (int w = 0; w < W; ++w) weights[w] = load<kLanes>(u + w * kLanes);
#pragma GCC unroll 14
      for (int r = 0; r < R; ++r) {
        const float source = v[r * kLanes + lane];
        for (int w = 0; w < W; ++w) sums[r][w] += source * weights[w];
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int w = 0; w < W; ++w) store<kLanes>(m + w * m_block + r * kLanes, sums[r][w]);
  }
}

using Multiply = void (*)(const float*, const float*, std::int64_t, std::int64_t, float*,
                          std::int64_t, bool);
template <int W, std::size_t... R>
constexpr std::array<Multiply, sizeof...(R)> multiplies(std::index_sequence<R...>) {
  return {multiply<static_cast<int>(R) + 1, W>...};
}
constexpr std::array kMultiply{multiplies<1>(std::make_index_sequence<kTiles>()),
                               multiplies<2>(std::make_index_sequence<kTiles>())};

template <int M>
class Convolution {
 public:
  Convolution(const ConvGeometry& g, const Schedule& s, const Epilogue& epilogue,
              const ConvImage& image, int threads)
      : g_(g),
        s_(s),
        epilogue_(epilogue),
        image_(image),
        threads_(threads),
        blocks_(padded_to_block(g.ic) / kLanes),
        weights_position_(position_of_weights(s.piece)),
        sources_position_(position_of_sources(g.ic, s.chunk)),
        sums_position_(position_of_sums(s.chunk)) {}

  void run() const { s_.chunks == 0 ? run_panels() : run_chunks(); }

 private:
  static constexpr int A = Tile<M>::kSide;

  // Body runs once for every thread with a range of [0, jobs).
  template <typename Body>
  void share(std::int64_t jobs, const Body& body) const {
    parallel_for(threads_, threads_, [&](std::int64_t slot) {
      body(slot, jobs * slot / threads_, jobs * (slot + 1) / threads_);
    });
  }

  // Few weights, many tiles: a thread takes a chunk of tiles, which stays in its cache, through all
  // stages.
  void run_chunks() const {
    float* const weights = image_.scratch;
    const std::int64_t panel_size = kPositions<M> * weights_position_;
    parallel_for(panels(g_.oc), threads_, [&](std::int64_t panel) {
      transform_weights(panel, 0, weights + panel * panel_size);
    });
    share(s_.chunks, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      float* const sources = weights + s_.weights + slot * (s_.sources + s_.sums);
      float* const sums = sources + s_.sources;
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t first = chunk * s_.chunk;
        const std::int64_t tiles = std::min(s_.chunk, s_.rows * s_.columns - first);
        for (std::int64_t block = 0; block < blocks_; ++block) {
          for (std::int64_t t = 0; t < tiles; ++t)
            transform_sources(block, first + t, sources + (block * s_.chunk + t) * kLanes);
        }
        for (std::int64_t panel = 0; panel < panels(g_.oc); ++panel) {
          multiply_piece(panel, 0, weights + panel * panel_size, sources, tiles, sums);
          finish(panel, first, tiles, sums);
        }
      }
    });
  }

  // Many weights: they are transformed where they are used, 32 filters at a time.
  void run_panels() const {
    float* const sources = image_.scratch;
    const std::int64_t tiles = s_.rows * s_.columns;
    parallel_for(blocks_ * s_.rows, threads_, [&](std::int64_t job) {
      const std::int64_t block = job / s_.rows;
      const std::int64_t first = job % s_.rows * s_.columns;
      for (std::int64_t t = first; t < first + s_.columns; ++t)
        transform_sources(block, t, sources + (block * tiles + t) * kLanes);
    });
    share(panels(g_.oc), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      float* const weights = sources + s_.sources + slot * (s_.weights + s_.sums);
      float* const sums = weights + s_.weights;
      for (std::int64_t panel = begin; panel < end; ++panel) {
        for (std::int64_t piece = 0; piece < padded_to_block(g_.ic); piece += s_.piece) {
          transform_weights(panel, piece, weights);
          multiply_piece(panel, piece, weights, sources, tiles, sums);
        }
        finish(panel, 0, tiles, sums);
      }
    });
  }

  // All positions of one tile and channel block; position p goes to out + p * sources_position_.
  [[gnu::noinline]] void transform_sources(std::int64_t block, std::int64_t tile,
                                           float* out) const {
    const std::int64_t y = tile / s_.columns * M - g_.ph;
    const std::int64_t x = tile % s_.columns * M - g_.pw;
    const float* const plane = image_.src + block * g_.ih * g_.iw * kLanes;
    const bool inside = y >= 0 && y + A <= g_.ih && x >= 0 && x + A <= g_.iw;
    Float half[A][A];
    for (int i = 0; i < A; ++i) {
      Float row[A];
      const float* const at = plane + ((y + i) * g_.iw + x) * kLanes;
      if (inside) {
        for (int j = 0; j < A; ++j) row[j] = load<kLanes>(at + j * kLanes);
      } else {
        for (int j = 0; j < A; ++j) {
          const bool exists = y + i >= 0 && y + i < g_.ih && x + j >= 0 && x + j < g_.iw;
          row[j] = exists ? load<kLanes>(at + j * kLanes) : Float{};
        }
      }
      Float line[A];
      Tile<M>::source(row, line);
      for (int j = 0; j < A; ++j) half[j][i] = line[j];
    }
    for (int j = 0; j < A; ++j) {
      Float line[A];
      Tile<M>::source(half[j], line);
      for (int i = 0; i < A; ++i) store<kLanes>(out + (i * A + j) * sources_position_, line[i]);
    }
  }

  [[gnu::noinline]] void transform_weights(std::int64_t panel, std::int64_t first,
                                           float* out) const {
    const int width = blocks_of_panel(panel, g_.oc);
    const float* in = weights_of(panel, first);
    const std::int64_t channels = std::min(s_.piece, padded_to_block(g_.ic) - first);
    for (std::int64_t c = 0; c < channels; ++c, in += kTaps * width * kLanes) {
      for (int w = 0; w < width; ++w) {
        Float half[A][3];
        for (int i = 0; i < 3; ++i) {
          Float row[3], line[A];
          for (int j = 0; j < 3; ++j)
            row[j] = load<kLanes>(in + ((i * 3 + j) * width + w) * kLanes);
          Tile<M>::weights(row, line);
          for (int j = 0; j < A; ++j) half[j][i] = line[j];
        }
        for (int j = 0; j < A; ++j) {
          Float line[A];
          Tile<M>::weights(half[j], line);
          for (int i = 0; i < A; ++i) {
            store<kLanes>(out + (i * A + j) * weights_position_ + (c * width + w) * kLanes,
                          line[i]);
          }
        }
      }
    }
  }

  const float* weights_of(std::int64_t panel, std::int64_t channel) const {
    return image_.weights + (panel * kPanel * padded_to_block(g_.ic) +
                             channel * blocks_of_panel(panel, g_.oc) * kLanes) *
                                kTaps;
  }

  // Adds the channels of a piece to the sums, or begins these with them.
  void multiply_piece(std::int64_t panel, std::int64_t channel, const float* weights,
                      const float* sources, std::int64_t tiles, float* sums) const {
    const std::int64_t blocks = std::min(s_.piece, padded_to_block(g_.ic) - channel) / kLanes;
    sources += channel * s_.chunk;
    const int width = blocks_of_panel(panel, g_.oc);
    const std::int64_t groups = ceil_div(tiles, kTiles);
    // Weights of the next piece stand behind those of this one. They come from memory, which has
    // time enough while these are multiplied.
    const std::int64_t lines = s_.chunks > 0 ? 0 : s_.piece * width * kTaps;
    const float* const next = weights_of(panel, channel) + lines * kLanes;
    for (std::int64_t p = 0; p < kPositions<M>; ++p) {
      for (std::int64_t line = lines * p / kPositions<M>; line < lines * (p + 1) / kPositions<M>;
           ++line)
        __builtin_prefetch(next + line * kLanes, 0, 2);
      for (std::int64_t group = 0; group < groups; ++group) {
        const std::int64_t first = tiles * group / groups;
        const std::int64_t count = tiles * (group + 1) / groups - first;
        kMultiply[static_cast<std::size_t>(width - 1)][static_cast<std::size_t>(count - 1)](
            weights + p * weights_position_, sources + p * sources_position_ + first * kLanes,
            blocks, s_.chunk * kLanes, sums + p * sums_position_ + first * kLanes,
            s_.chunk * kLanes, channel > 0);
      }
    }
  }

  // From the sums of a panel to results in memory.
  void finish(std::int64_t panel, std::int64_t first, std::int64_t tiles, const float* sums) const {
    with_activation(epilogue_.activation, [&](auto act) {
      for (int w = 0; w < blocks_of_panel(panel, g_.oc); ++w) {
        const std::int64_t block = panel * 2 + w;
        for (std::int64_t t = 0; t < tiles; ++t)
          finish_tile(block, first + t, sums + (w * s_.chunk + t) * kLanes, act);
      }
    });
  }

  template <typename Act>
  [[gnu::noinline]] void finish_tile(std::int64_t block, std::int64_t tile, const float* sums,
                                     Act act) const {
    Float half[M][A];
    for (int i = 0; i < A; ++i) {
      Float row[A], line[M];
      for (int j = 0; j < A; ++j) row[j] = load<kLanes>(sums + (i * A + j) * sums_position_);
      Tile<M>::sums(row, line);
      for (int j = 0; j < M; ++j) half[j][i] = line[j];
    }
    const std::int64_t y = tile / s_.columns * M;
    const std::int64_t x = tile % s_.columns * M;
    const int used = static_cast<int>(std::min(kLanes, g_.oc - block * kLanes));
    const Float bias =
        image_.bias != nullptr ? load_lanes<kLanes>(image_.bias + block * kLanes, used) : Float{};
    const std::int64_t start = ((block * g_.oh + y) * g_.ow + x) * kLanes;
    const auto rows = static_cast<int>(std::min<std::int64_t>(M, g_.oh - y));
    const auto columns = static_cast<int>(std::min<std::int64_t>(M, g_.ow - x));
    for (int j = 0; j < columns; ++j) {
      Float line[M];
      Tile<M>::sums(half[j], line);
      for (int i = 0; i < rows; ++i) {
        const std::int64_t at = start + (i * g_.ow + j) * kLanes;
        const float* const residual = image_.residual == nullptr ? nullptr : image_.residual + at;
        store<kLanes>(image_.dst + at,
                      finished<kLanes>(act, epilogue_.last, line[i] + bias, residual, used));
      }
    }
  }

  const ConvGeometry& g_;
  const Schedule& s_;
  const Epilogue& epilogue_;
  const ConvImage& image_;
  int threads_;
  std::int64_t blocks_, weights_position_, sources_position_, sums_position_;
};

}  // namespace

std::optional<Schedule> schedule(const ConvGeometry& g, int block, int threads) {
  const bool fits = kOwnConvIsFast && block == kLanes && g.kh == 3 && g.kw == 3 && g.sh == 1 &&
                    g.sw == 1 && g.dh == 1 && g.dw == 1 && g.groups == 1 && g.ic >= kLanes &&
                    g.oc >= kLanes;
  if (!fits) return std::nullopt;
  const double small = work<2>(g);
  const double large = work<4>(g);
  if (std::min(small, large) >= direct_work(g)) return std::nullopt;
  return small < large ? make_schedule<2>(g, threads) : make_schedule<4>(g, threads);
}

void run(const ConvGeometry& geometry, const Schedule& schedule, const Epilogue& epilogue,
         const ConvImage& image, int threads) {
  if (schedule.results == 2) {
    Convolution<2>(geometry, schedule, epilogue, image, threads).run();
  } else {
    Convolution<4>(geometry, schedule, epilogue, image, threads).run();
  }
}

}  // namespace lantern::ops::winograd
