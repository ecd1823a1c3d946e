#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::layers {

/// What this engine does with a section or key.
enum class Effect : std::uint8_t {
  kAsDarknet,  ///< what Darknet's build for cards does
  kOurs,       ///< a key of ours, or one of Darknet that works in another way here
  kNone,       ///< read and checked, changes nothing
  kRefused,    ///< any value but the default ends in an error before anything runs
};
std::string_view to_string(Effect effect);

/// The status of some keys of one section, or of the section itself.
struct KeyStatus {
  std::string_view section;  ///< as in section_reference(); "every layer": the common keys
  std::string_view keys;     ///< separated by blanks; empty: the section itself
  Effect effect = Effect::kAsDarknet;
  std::string_view reason = {};   ///< given for all but kAsDarknet, where it is a remark
  std::string_view refused = {};  ///< a value that is refused; the row then has one key

  std::vector<std::string_view> names() const;
};

/// Every section and every key of the key tables, each in one row.
std::span<const KeyStatus> key_statuses();
/// Null for what no row names. `key` empty: the section.
const KeyStatus* find_status(std::string_view section, std::string_view key);

/// Throws kInvalidConfig at `where` for a key of [net] that is asked for, with the reason of its
/// row.
[[noreturn]] void refuse_net_key(const std::string& where, std::string_view key);

}  // namespace lantern::layers
