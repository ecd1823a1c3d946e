#include "io/training_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"

namespace lantern::io {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic{'L', 'N', 'T', 'N', 'S', 'T', 'A', 'T'};
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kLongestHeader = 64ULL << 20;
constexpr std::uint64_t kFixedBytes = 24;  // magic, version, length of the header
constexpr std::uint64_t kChecksumBytes = 8;

// FNV-1a over words of eight bytes, each mixed so that high bits reach low ones. Its value does not
// depend on how the bytes are dealt out to calls.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (held_ == 0 && bytes.size() >= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), 8);
        mix(word);
        bytes = bytes.subspan(8);
        continue;
      }
      pending_[held_++] = bytes.front();
      bytes = bytes.subspan(1);
      if (held_ == 8) flush();
    }
  }
  std::uint64_t value() {
    if (held_ > 0) {
      std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(held_), pending_.end(),
                std::byte{0});
      flush();
    }
    return hash_;
  }

 private:
  void flush() {
    mix(std::bit_cast<std::uint64_t>(pending_));
    held_ = 0;
  }
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3ULL;
    hash_ ^= hash_ >> 29;
  }
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::array<std::byte, 8> pending_{};
  std::size_t held_ = 0;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::kInvalidData, path.string(), "{}", what);
}

File open_state(const std::filesystem::path& path) {
  if (const std::string_view kind = kind_unless_file(path); !kind.empty())
    refuse(path, fmt::format("is {}, a state file is needed", kind));
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) refuse(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  return file;
}

void read_exactly(std::FILE* file, std::span<std::byte> to, const std::filesystem::path& path) {
  if (std::fread(to.data(), 1, to.size(), file) != to.size())
    refuse(path, "cannot be read to its end");
}

nlohmann::json header_of(const TrainingState& state) {
  nlohmann::json header{{"iteration", state.iteration},
                        {"batch", state.batch},
                        {"seed", state.seed},
                        {"threads", state.threads},
                        {"cfg_hash", state.cfg_hash},
                        {"average_loss", state.average_loss},
                        {"rate_factor", state.rate_factor},
                        {"skipped_in_a_row", state.skipped_in_a_row},
                        {"averages", state.averages},
                        {"last_evaluation", state.last_evaluation}};
  if (state.best) header["best"] = *state.best;
  header["arrays"] = nlohmann::json::array();
  for (const StateArray& array : state.arrays)
    header["arrays"].push_back({array.name, array.count});
  return header;
}

TrainingState state_of(const nlohmann::json& header) {
  TrainingState state;
  header.at("iteration").get_to(state.iteration);
  header.at("batch").get_to(state.batch);
  header.at("seed").get_to(state.seed);
  header.at("threads").get_to(state.threads);
  header.at("cfg_hash").get_to(state.cfg_hash);
  header.at("average_loss").get_to(state.average_loss);
  header.at("rate_factor").get_to(state.rate_factor);
  header.at("skipped_in_a_row").get_to(state.skipped_in_a_row);
  header.at("averages").get_to(state.averages);
  header.at("last_evaluation").get_to(state.last_evaluation);
  if (header.contains("best")) state.best = header.at("best").get<double>();
  for (const nlohmann::json& array : header.at("arrays"))
    state.arrays.push_back({array.at(0).get<std::string>(), array.at(1).get<std::int64_t>()});
  return state;
}

// Of the arrays together; nothing where no file could hold them.
std::optional<std::uint64_t> bytes_of(const TrainingState& state) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 8;
  std::uint64_t bytes = 0;
  for (const StateArray& array : state.arrays) {
    if (array.count < 0 || static_cast<std::uint64_t>(array.count) > kMost) return std::nullopt;
    bytes += static_cast<std::uint64_t>(array.count) * sizeof(float);
    if (bytes > kMost) return std::nullopt;
  }
  return bytes;
}

// The header of an open file; behind it the arrays begin.
TrainingState read_header(std::FILE* file, std::uint64_t size, const std::filesystem::path& path,
                          Checksum& checksum) {
  std::array<std::byte, kFixedBytes> fixed{};
  if (size < kFixedBytes + kChecksumBytes) refuse(path, "is too short for a state file");
  read_exactly(file, fixed, path);
  if (std::memcmp(fixed.data(), kMagic.data(), kMagic.size()) != 0)
    refuse(path, "is no state file of a training; weights files are given behind the cfg");
  std::uint64_t version = 0;
  std::uint64_t length = 0;
  std::memcpy(&version, fixed.data() + 8, 8);
  std::memcpy(&length, fixed.data() + 16, 8);
  if (version != kVersion)
    refuse(path, fmt::format("is a state file of version {}, this program reads version {}",
                             version, kVersion));
  if (length > kLongestHeader || length > size - kFixedBytes - kChecksumBytes)
    refuse(path, "is damaged or cut short: its header does not fit into it");
  std::string text(length, '\0');
  read_exactly(file, std::as_writable_bytes(std::span(text)), path);
  checksum.add(fixed);
  checksum.add(std::as_bytes(std::span(text)));
  TrainingState state;
  try {
    state = state_of(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception&) {
    refuse(path, "is damaged: its header cannot be read");
  }
  const std::optional<std::uint64_t> bytes = bytes_of(state);
  if (!bytes || state.iteration < 0 || state.batch <= 0)
    refuse(path, "is damaged: its header holds impossible numbers");
  const std::uint64_t want = kFixedBytes + length + *bytes + kChecksumBytes;
  if (size != want)
    refuse(path, fmt::format("is {} bytes, {} are needed: it is cut short or damaged", size, want));
  return state;
}

std::uint64_t size_of(const std::filesystem::path& path) {
  std::error_code code;
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  if (code) refuse(path, fmt::format("has no size: {}", code.message()));
  return size;
}

}  // namespace

std::string text_hash(std::string_view text) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(text)));
  return fmt::format("{:016x}", checksum.value());
}

void write_state(const std::filesystem::path& path, const TrainingState& state,
                 const std::function<std::span<const float>(std::size_t)>& values) {
  AtomicFile file(path);
  Checksum checksum;
  const auto put = [&](std::span<const std::byte> bytes) {
    checksum.add(bytes);
    file.write(bytes);
  };
  const std::string header = header_of(state).dump();
  const std::uint64_t length = header.size();
  put(std::as_bytes(std::span(kMagic)));
  put(std::as_bytes(std::span(&kVersion, 1)));
  put(std::as_bytes(std::span(&length, 1)));
  put(std::as_bytes(std::span(header)));
  for (std::size_t i = 0; i < state.arrays.size(); ++i) {
    const std::span<const float> array = values(i);
    LANTERN_ASSERT(static_cast<std::int64_t>(array.size()) == state.arrays[i].count,
                   "values are as many as the header says");
    put(std::as_bytes(array));
  }
  const std::uint64_t sum = checksum.value();
  file.write(std::as_bytes(std::span(&sum, 1)));
  file.commit();
}

TrainingState read_state_header(const std::filesystem::path& path) {
  Checksum unused;
  return read_header(open_state(path).get(), size_of(path), path, unused);
}

TrainingState read_state(const std::filesystem::path& path) {
  const File file = open_state(path);
  const std::uint64_t size = size_of(path);
  Checksum checksum;
  TrainingState state = read_header(file.get(), size, path, checksum);
  std::vector<std::byte> buffer(1 << 20);
  for (std::uint64_t left = *bytes_of(state); left > 0;) {
    const auto part =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(left, 1 << 20)));
    read_exactly(file.get(), part, path);
    checksum.add(part);
    left -= part.size();
  }
  std::uint64_t sum = 0;
  read_exactly(file.get(), std::as_writable_bytes(std::span(&sum, 1)), path);
  if (sum != checksum.value())
    refuse(path, "is damaged: its checksum is another than that of its bytes");
  return state;
}

void read_state_values(const std::filesystem::path& path, const TrainingState& state,
                       const std::function<void(std::size_t, std::span<const float>)>& sink) {
  const File file = open_state(path);
  Checksum unused;
  if (read_header(file.get(), size_of(path), path, unused).arrays != state.arrays)
    refuse(path, "has changed while it was read");
  std::vector<float> values;
  for (std::size_t i = 0; i < state.arrays.size(); ++i) {
    values.resize(static_cast<std::size_t>(state.arrays[i].count));
    read_exactly(file.get(), std::as_writable_bytes(std::span(values)), path);
    sink(i, values);
  }
}

}  // namespace lantern::io
