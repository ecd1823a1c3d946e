#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::io {

/// One array of floats, in plain order.
struct StateArray {
  std::string name;
  std::int64_t count = 0;
  bool operator==(const StateArray&) const = default;
};

/// Everything about a training between two iterations but the values of its arrays. Random draws
/// and the order of the images are functions of seed and iteration.
struct TrainingState {
  std::int64_t iteration = 0;  ///< finished ones
  std::int64_t batch = 0;      ///< images of an iteration
  std::uint64_t seed = 0;
  int threads = 0;           ///< of the compute team: sums over images depend on it
  std::string cfg_hash;      ///< of the cfg's text
  double average_loss = -1;  ///< below 0: none yet
  double rate_factor = 1;    ///< halved by every on_nan=rollback
  int skipped_in_a_row = 0;
  bool averages = false;             ///< the averages of ema_alpha have begun
  std::optional<double> best;        ///< of what is measured while training, 0 to 1
  std::int64_t last_evaluation = 0;  ///< iteration
  std::vector<StateArray> arrays;    ///< in file order
};

/// A 64-bit number of a text as 16 hexadecimal digits; not for security.
std::string text_hash(std::string_view text);

/// Writes a state file, atomically: "LNTNSTAT", version, length of the header, the header as JSON,
/// the arrays, a checksum of all that. `values(i)` gives array i and is read before the next is
/// asked for.
void write_state(const std::filesystem::path& path, const TrainingState& state,
                 const std::function<std::span<const float>(std::size_t)>& values);

/// Reads the header. Throws kInvalidData for what is no state file, of another version or of
/// another length than the header says.
TrainingState read_state_header(const std::filesystem::path& path);
/// The same, with every byte of the file checked against its checksum: what is damaged is refused.
TrainingState read_state(const std::filesystem::path& path);

/// Hands on one array of a file after the other, in the order of `state.arrays`.
void read_state_values(const std::filesystem::path& path, const TrainingState& state,
                       const std::function<void(std::size_t, std::span<const float>)>& sink);

}  // namespace lantern::io
