#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace lantern {

/// Without blanks, tabs, CR and LF at both ends.
std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
/// Whole text as a number, locale independent; nothing else may follow. Leading '+' accepted.
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<double> parse_float(std::string_view text);
/// "8G", "512M", "1.5G", "4096": powers of 1024.
std::optional<Bytes> parse_bytes(std::string_view text);
/// For messages: control characters (of binary files and foreign paths) become '?', lines longer
/// than kLongestLine bytes lose their middle.
inline constexpr std::size_t kLongestLine = 2000;
std::string readable(std::string_view text);
/// The candidate with the smallest edit distance, if it is near enough to be a likely misspelling.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

}  // namespace lantern
