#include "cfg/document.hpp"

#include <algorithm>
#include <utility>

#include "core/text.hpp"

namespace lantern::cfg {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

// A text as it may stand in a message: short and printable, whatever bytes the file has.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return out + (text.size() > kLongest ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::string path, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    document_.path = std::move(path);
  }

  Document run(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
      diagnostics_.error(where(document_.path, 1),
                         "the file is UTF-16; save it as UTF-8 or plain ASCII");
      return std::move(document_);
    }
    for (std::size_t start = 0; start < text.size(); ++line_) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      read_line(text.substr(start, end - start));
      start = end + 1;
    }
    if (document_.sections.empty() && !reported_orphan_) {
      diagnostics_.error(where(document_.path, 1),
                         "the file has no sections (is it empty?); a cfg starts with [net]");
    }
    return std::move(document_);
  }

 private:
  void read_line(std::string_view raw) {
    const std::size_t first = raw.find_first_not_of(kBlanks);
    if (first == std::string_view::npos || raw[first] == '#' || raw[first] == ';') return;
    const int column = static_cast<int>(first) + 1;
    const std::string_view line = raw.substr(0, raw.find('#'));
    if (raw[first] == '[') {
      read_header(line.substr(first), column);
    } else {
      read_option(line, first, column);
    }
  }

  void read_header(std::string_view line, int column) {
    const std::size_t close = line.find(']');
    const std::string at = where(document_.path, line_, column);
    if (close == std::string_view::npos) {
      diagnostics_.error(at, "section name {} has no closing ']'", quoted(trim(line)));
      document_.sections.push_back({without_blanks(line.substr(1)), line_, {}});
      return;
    }
    std::string name = without_blanks(line.substr(1, close - 1));
    const std::string_view rest = trim(line.substr(close + 1));
    if (!rest.empty()) {
      diagnostics_.error(at, "{} follows [{}]; only a comment may stand after a section name",
                         quoted(rest), name);
    }
    document_.sections.push_back({std::move(name), line_, {}});
  }

  void read_option(std::string_view line, std::size_t first, int column) {
    const std::string at = where(document_.path, line_, column);
    if (document_.sections.empty()) {
      // One message is enough: every following line has the same cause.
      if (!std::exchange(reported_orphan_, true)) {
        diagnostics_.error(
            at,
            "{} stands before the first section; a section header such as [net] is expected first",
            quoted(trim(line)));
      }
      return;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      diagnostics_.warning(at, "{} has no '='; the line is ignored", quoted(trim(line)));
      return;
    }
    Option option;
    option.key = without_blanks(line.substr(first, equals - first));
    option.value = std::string(trim(line.substr(equals + 1)));
    option.line = line_;
    option.column = column;
    const std::size_t value_at = line.find_first_not_of(kBlanks, equals + 1);
    option.value_column =
        static_cast<int>(value_at == std::string_view::npos ? equals + 1 : value_at) + 1;
    std::vector<Option>& options = document_.sections.back().options;
    if (option.key.empty()) {
      diagnostics_.warning(at, "no key before '='; the line is ignored");
      return;
    }
    const auto earlier = std::ranges::find_if(
        options, [&](const Option& o) { return o.key == option.key && !o.value.empty(); });
    if (earlier != options.end() && !option.value.empty()) {
      diagnostics_.warning(at, "[{}] {} was given in line {} already; the first value {} is used",
                           document_.sections.back().name, option.key, earlier->line,
                           quoted(earlier->value));
    }
    options.push_back(std::move(option));
  }

  Document document_;
  Diagnostics& diagnostics_;
  int line_ = 1;
  bool reported_orphan_ = false;
};

}  // namespace

Document parse(std::string path, std::string_view text, Diagnostics& diagnostics) {
  return Parser(std::move(path), diagnostics).run(text);
}

std::string where(std::string_view path, int line, int column) {
  return fmt::format("{}:{}:{}", path, line, column);
}

std::string without_blanks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (kBlanks.find(c) == std::string_view::npos) out += c;
  }
  return out;
}

}  // namespace lantern::cfg
