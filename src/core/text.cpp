#include "core/text.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace lantern {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0;;) {
    const std::size_t end = text.find(separator, start);
    parts.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

namespace {
template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}
}  // namespace

std::optional<std::int64_t> parse_int(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}
std::optional<double> parse_float(std::string_view text) { return parse_whole<double>(text); }

std::optional<Bytes> parse_bytes(std::string_view text) {
  text = trim(text);
  if (text.empty()) return std::nullopt;
  if (text.ends_with('B') || text.ends_with('b')) text.remove_suffix(1);
  if (text.ends_with('i')) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  double unit = 1;
  switch (text.back()) {
    case 'k':
    case 'K':
      unit = 0x1p10;
      break;
    case 'm':
    case 'M':
      unit = 0x1p20;
      break;
    case 'g':
    case 'G':
      unit = 0x1p30;
      break;
    case 't':
    case 'T':
      unit = 0x1p40;
      break;
    default:
      break;
  }
  if (unit > 1) text.remove_suffix(1);
  const std::optional<double> number = parse_float(trim(text));
  if (!number || !(*number >= 0) || *number * unit > 0x1p62) return std::nullopt;
  return static_cast<Bytes>(*number * unit);
}

std::string readable(std::string_view text) {
  std::string out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    if (start != 0) out += '\n';
    if (line.size() <= kLongestLine) {
      out += line;
    } else {  // what is wrong stands at the end
      out += line.substr(0, kLongestLine / 2);
      out += " ... ";
      out += line.substr(line.size() - kLongestLine / 2);
    }
    start = end + 1;
  }
  std::ranges::replace_if(
      out, [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f'; },
      '?');
  return out;
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace lantern
