#include "io/weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/file.hpp"

namespace lantern::io {
namespace {

// The format is little-endian without padding; values are moved as they lie in memory.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(float) == 4);

constexpr Bytes kVersionSize = 12;  // three int32 before `seen`
constexpr Bytes kMaxBytes = std::numeric_limits<Bytes>::max();

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

struct OpenedFile {
  File file;
  Bytes size = 0;
};

OpenedFile open_weights(const std::filesystem::path& path) {
  std::error_code code;
  if (const std::string_view kind = kind_unless_file(path); !kind.empty()) {
    throw Error(ErrorCode::kInvalidData, path.string(), "is {}, a .weights file is needed", kind);
  }
  OpenedFile opened{File(std::fopen(path.c_str(), "rb"))};
  if (!opened.file) {
    throw Error(ErrorCode::kInvalidData, "", "Couldn't open file: {} ({})", path.string(),
                std::strerror(errno));
  }
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  if (code) {
    throw Error(ErrorCode::kInvalidData, path.string(), "has no size ({}); a plain file is needed",
                code.message());
  }
  opened.size = static_cast<Bytes>(size);
  return opened;
}

void read_exactly(std::FILE* file, void* to, Bytes bytes, const std::filesystem::path& path) {
  if (std::fread(to, 1, static_cast<std::size_t>(bytes), file) != static_cast<std::size_t>(bytes)) {
    throw Error(ErrorCode::kInvalidData, path.string(), "cannot be read to its end");
  }
}

/// What the first bytes of a file that is no weights file look like.
std::string_view kind_of(std::span<const unsigned char> start) {
  const auto begins = [&](std::string_view magic) {
    return start.size() >= magic.size() &&
           std::memcmp(start.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("\xFF\xD8\xFF")) return "a JPEG picture";
  if (begins("\x89PNG")) return "a PNG picture";
  if (begins("PK\x03\x04")) return "a ZIP archive (PyTorch and Keras files are such)";
  if (begins("\x1F\x8B")) return "a gzip archive";
  if (begins("version https://git-lfs")) return "a Git LFS pointer, not the file itself";
  const bool is_text = std::all_of(start.begin(), start.end(), [](unsigned char c) {
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0x7F);
  });
  if (is_text && !start.empty()) return "a text file";
  return {};
}

/// Versions in use are 0.1.0, 0.2.0, 0.2.5 and 1000 and more for transposed files; anything far
/// outside is no weights file.
bool is_plausible(const WeightsHeader& header) {
  return header.major >= 0 && header.major < 10000 && header.minor >= 0 && header.minor < 10000 &&
         header.revision >= 0 && header.revision < 1000000;
}

[[noreturn]] void throw_not_weights(const std::filesystem::path& path, Bytes size,
                                    std::span<const unsigned char> start, const std::string& what) {
  const std::string_view kind = kind_of(start);
  throw Error(ErrorCode::kInvalidData, path.string(),
              "is not a Darknet .weights file ({} bytes, {}){}{}", size, what,
              kind.empty() ? "" : "; it looks like ", kind);
}

/// Header of a file; `needed` is the size of a complete file if the caller knows it.
WeightsHeader read_header(const OpenedFile& opened, const std::filesystem::path& path,
                          std::optional<Bytes> needed) {
  const auto throw_cut = [&](Bytes header_size) {
    const std::string want = needed ? fmt::format("{} bytes are needed", *needed)
                                    : fmt::format("its header alone has {}", header_size);
    throw Error(ErrorCode::kInvalidData, path.string(),
                "is {} bytes, {}: the data ends inside the header; copy or download the file again",
                opened.size, want);
  };
  std::array<unsigned char, 32> start{};
  const Bytes got = std::min<Bytes>(opened.size, static_cast<Bytes>(start.size()));
  read_exactly(opened.file.get(), start.data(), got, path);
  const std::span<const unsigned char> seen_start(start.data(), static_cast<std::size_t>(got));
  if (got < kVersionSize) {
    if (!kind_of(seen_start).empty()) {
      throw_not_weights(path, opened.size, seen_start, "shorter than a header");
    }
    throw_cut(20);
  }
  WeightsHeader header;
  std::memcpy(&header.major, start.data(), 4);
  std::memcpy(&header.minor, start.data() + 4, 4);
  std::memcpy(&header.revision, start.data() + 8, 4);
  if (!is_plausible(header)) {
    throw_not_weights(path, opened.size, seen_start,
                      fmt::format("it begins with version {}.{}.{}, want one like 0.2.5",
                                  header.major, header.minor, header.revision));
  }
  if (opened.size < header.size()) throw_cut(header.size());
  if (header.has_wide_seen()) {
    std::memcpy(&header.seen, start.data() + kVersionSize, 8);
  } else {
    std::uint32_t seen = 0;
    std::memcpy(&seen, start.data() + kVersionSize, 4);
    header.seen = seen;
  }
  if (std::fseek(opened.file.get(), static_cast<long>(header.size()), SEEK_SET) != 0) {
    throw Error(ErrorCode::kInvalidData, path.string(), "cannot be read from a position");
  }
  return header;
}

bool is_in_file(const WeightsLayer& layer, const WeightsArray& array) {
  if (layer.dontload) return false;
  const bool is_scale =
      array.name == kScales || array.name == kRollingMean || array.name == kRollingVariance;
  return !(layer.dontloadscales && is_scale);
}

Bytes saturating_add(Bytes a, Bytes b) { return a > kMaxBytes - b ? kMaxBytes : a + b; }

Bytes array_bytes(const WeightsArray& array) {
  LANTERN_ASSERT(array.count >= 0, "an array has no negative count");
  return array.count > kMaxBytes / 4 ? kMaxBytes : array.count * 4;
}

Bytes bytes_in_file(const WeightsLayer& layer) {
  Bytes bytes = 0;
  for (const WeightsArray& array : layer.arrays) {
    if (is_in_file(layer, array)) bytes = saturating_add(bytes, array_bytes(array));
  }
  return bytes;
}

std::string describe(const WeightsLayer& layer) {
  return fmt::format("layer {} ([{}])", layer.layer, layer.section);
}

/// [rows, columns] -> [columns, rows]
std::vector<float> transposed(std::span<const float> values, std::int64_t rows) {
  const auto row_count = static_cast<std::size_t>(rows);
  LANTERN_ASSERT(rows > 0 && values.size() % row_count == 0, "a matrix has whole rows");
  const std::size_t columns = values.size() / row_count;
  std::vector<float> result(values.size());
  for (std::size_t r = 0; r < row_count; ++r) {
    for (std::size_t c = 0; c < columns; ++c) result[c * row_count + r] = values[r * columns + c];
  }
  return result;
}

/// How much of the layout the file holds.
struct Extent {
  Bytes needed = 0;  ///< a complete file
  int expected = 0;  ///< layers with data in a complete file
  int whole = 0;     ///< of these, whole in this file
  bool cut_inside = false;
  const WeightsLayer* last = nullptr;  ///< last whole one
  const WeightsLayer* cut_layer = nullptr;
  const WeightsArray* cut_array = nullptr;
};

Extent measure(const WeightsHeader& header, const WeightsLayout& layout, int up_to_layer,
               Bytes size) {
  Extent extent{.needed = header.size()};
  for (const WeightsLayer& layer : layout) {
    const Bytes bytes = bytes_in_file(layer);
    if (layer.layer >= up_to_layer || bytes == 0) continue;
    ++extent.expected;
    const Bytes begin = extent.needed;
    extent.needed = saturating_add(begin, bytes);
    if (extent.needed <= size) {
      ++extent.whole;
      extent.last = &layer;
    } else if (begin < size) {
      extent.cut_inside = true;
      extent.cut_layer = &layer;
      Bytes end = begin;
      for (const WeightsArray& array : layer.arrays) {
        if (!is_in_file(layer, array)) continue;
        end = saturating_add(end, array_bytes(array));
        extent.cut_array = &array;
        if (end > size) break;
      }
    }
  }
  return extent;
}

/// Refuses what does not fit; warns of what a training may start from.
void check_size(const std::filesystem::path& path, Bytes size, const Extent& extent,
                Purpose purpose, bool look_behind, Diagnostics& warnings) {
  if (extent.cut_inside) {
    throw Error(ErrorCode::kInvalidData, path.string(),
                "is {} bytes, {} bytes are needed for this cfg: the data ends inside {}, array {}; "
                "the file is cut short (copy or download it again) or belongs to another cfg",
                size, extent.needed, describe(*extent.cut_layer), extent.cut_array->name);
  }
  if (extent.whole < extent.expected) {
    if (extent.whole == 0) {
      throw Error(ErrorCode::kInvalidData, path.string(),
                  "is {} bytes, {} bytes are needed for this cfg: the data ends after the header, "
                  "no layer has weights; copy or download the file again",
                  size, extent.needed);
    }
    if (purpose == Purpose::kEvaluation) {
      throw Error(ErrorCode::kInvalidData, path.string(),
                  "is {} bytes, {} bytes are needed for this cfg: the data ends after {}, {} of {} "
                  "layers with weights; such a file can only be the start of a training",
                  size, extent.needed, describe(*extent.last), extent.whole, extent.expected);
    }
    warnings.warning(path.string(),
                     "{} of {} layers with weights loaded (the data ends after {}); the others "
                     "keep their initial weights",
                     extent.whole, extent.expected, describe(*extent.last));
    return;
  }
  if (look_behind && size > extent.needed) {
    const std::string text = fmt::format(
        "is {} bytes, {} bytes are needed for this cfg: {} bytes follow the last layer{}; the file "
        "belongs to another cfg",
        size, extent.needed, size - extent.needed,
        extent.last == nullptr ? "" : ", " + describe(*extent.last));
    if (purpose == Purpose::kEvaluation) {
      throw Error(ErrorCode::kInvalidData, path.string(), "{}", text);
    }
    warnings.warning(path.string(), "{}", text);
  }
}

void check_finite(const std::filesystem::path& path, const WeightsLayer& layer,
                  const WeightsArray& array, std::span<const float> values, Purpose purpose,
                  Diagnostics& warnings) {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (bad == values.end()) return;
  const std::string text = fmt::format(
      "{}, array {}: value {} of {} is {}; the file is damaged or its training diverged",
      describe(layer), array.name, bad - values.begin(), values.size(), *bad);
  if (purpose == Purpose::kEvaluation) {
    throw Error(ErrorCode::kInvalidData, path.string(), "{}", text);
  }
  warnings.warning(path.string(), "{}", text);
}

}  // namespace

bool WeightsHeader::has_wide_seen() const {
  if (major >= 1000 || minor >= 1000) return false;
  return static_cast<std::int64_t>(major) * 10 + minor >= 2;
}

WeightsViews views_of(const WeightsValues& values) {
  WeightsViews views(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    views[i].assign(values[i].begin(), values[i].end());
  }
  return views;
}

Bytes weights_file_size(const WeightsHeader& header, const WeightsLayout& layout, int up_to_layer) {
  return measure(header, layout, up_to_layer, 0).needed;
}

WeightsHeader read_weights_header(const std::filesystem::path& path) {
  return read_header(open_weights(path), path, std::nullopt);
}

Weights read_weights(const std::filesystem::path& path, const WeightsLayout& layout,
                     Purpose purpose, Diagnostics& warnings, int up_to_layer) {
  WeightsValues all(layout.size());
  Weights weights = read_weights(
      path, layout, purpose, warnings,
      [&](std::size_t i, std::vector<std::vector<float>>& values) { all[i] = std::move(values); },
      up_to_layer);
  weights.values = std::move(all);
  return weights;
}

Weights read_weights(const std::filesystem::path& path, const WeightsLayout& layout,
                     Purpose purpose, Diagnostics& warnings, const WeightsSink& sink,
                     int up_to_layer) {
  const OpenedFile opened = open_weights(path);
  Weights weights;
  weights.file_size = opened.size;
  weights.header =
      read_header(opened, path, weights_file_size(WeightsHeader{}, layout, up_to_layer));
  const Extent extent = measure(weights.header, layout, up_to_layer, opened.size);
  check_size(path, opened.size, extent, purpose, up_to_layer == kAllLayers, warnings);
  weights.layers_expected = extent.expected;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const WeightsLayer& layer = layout[i];
    std::vector<std::vector<float>> arrays(layer.arrays.size());
    const bool is_loaded = layer.layer < up_to_layer && bytes_in_file(layer) > 0 &&
                           weights.layers_loaded < extent.whole;
    for (std::size_t k = 0; is_loaded && k < layer.arrays.size(); ++k) {
      const WeightsArray& array = layer.arrays[k];
      if (!is_in_file(layer, array)) continue;
      std::vector<float>& values = arrays[k];
      values.resize(static_cast<std::size_t>(array.count));
      read_exactly(opened.file.get(), values.data(), array_bytes(array), path);
      check_finite(path, layer, array, values, purpose, warnings);
      const bool is_flipped = layer.flipped && array.name == kWeights;
      const bool is_old = array.connected && weights.header.is_transposed();
      if ((is_flipped || is_old) && array.count > 0) {
        LANTERN_ASSERT(array.rows > 0, "a matrix that may be transposed names its rows");
        values = transposed(values, array.count / array.rows);
      }
    }
    if (is_loaded) ++weights.layers_loaded;
    sink(i, arrays);
  }
  return weights;
}

void write_weights(const std::filesystem::path& path, const WeightsHeader& header,
                   const WeightsLayout& layout, const WeightsViews& values, int up_to_layer) {
  LANTERN_ASSERT(values.size() == layout.size(), "one entry a layer of the layout");
  write_weights(
      path, header, layout,
      [&](std::size_t layer, std::size_t array) {
        LANTERN_ASSERT(values[layer].size() == layout[layer].arrays.size(),
                       "one span an array of the layer");
        return values[layer][array];
      },
      up_to_layer);
}

void write_weights(const std::filesystem::path& path, const WeightsHeader& header,
                   const WeightsLayout& layout, const WeightsSource& source, int up_to_layer) {
  if (!is_plausible(header)) {
    throw Error(ErrorCode::kUsage, path.string(), "{}.{}.{} is no version of a .weights file",
                header.major, header.minor, header.revision);
  }
  if (!header.has_wide_seen() && header.seen > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::kUsage, path.string(),
                "a file of version {}.{}.{} cannot count {} images; write version 0.2.5",
                header.major, header.minor, header.revision, header.seen);
  }
  AtomicFile file(path);
  const std::array<std::int32_t, 3> version{header.major, header.minor, header.revision};
  file.write(std::as_bytes(std::span(version)));
  file.write(std::as_bytes(std::span(&header.seen, 1))
                 .first(static_cast<std::size_t>(header.size() - kVersionSize)));
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const WeightsLayer& layer = layout[i];
    if (layer.layer >= up_to_layer) continue;
    for (std::size_t k = 0; k < layer.arrays.size(); ++k) {
      const WeightsArray& array = layer.arrays[k];
      const std::span<const float> view = source(i, k);
      LANTERN_ASSERT(static_cast<std::int64_t>(view.size()) == array.count,
                     "values are as many as the layout says");
      if (array.connected && header.is_transposed() && !view.empty()) {
        const std::vector<float> stored = transposed(view, array.rows);
        file.write(std::as_bytes(std::span(stored)));
      } else {
        file.write(std::as_bytes(view));
      }
    }
  }
  file.commit();
}

}  // namespace lantern::io
