#include "data/lists.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "core/file.hpp"
#include "core/log.hpp"
#include "core/text.hpp"

namespace lantern::data {

namespace {

constexpr std::array<std::string_view, 16> kDataKeys{
    "classes", "train", "valid", "difficult", "names", "labels",      "backup",   "results",
    "eval",    "map",   "top",   "leaves",    "test",  "saveweights", "savelast", "tree"};

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::string from_utf16(std::string_view bytes, bool little) {
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return little ? first | second << 8U : first << 8U | second;
  };
  std::string out;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    const bool is_high = code >= 0xD800 && code < 0xDC00;
    if (is_high && at + 3 < bytes.size() && (unit(at + 2) & 0xFC00U) == 0xDC00U) {
      code = 0x10000 + ((code - 0xD800) << 10) + (unit(at + 2) - 0xDC00);
      at += 2;
    } else if (code >= 0xD800 && code < 0xE000) {
      code = 0xFFFD;  // half a pair
    }
    append_utf8(code, out);
  }
  return out;
}

std::string at_line(const std::filesystem::path& path, int line) {
  return fmt::format("{}:{}", path.string(), line);
}

bool path_exists(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

std::filesystem::path expand_home(const std::string& text) {
  if (text == "~" || text.starts_with("~/")) {
    if (const char* home = std::getenv("HOME"); home != nullptr) return home + text.substr(1);
  }
  return text;
}

}  // namespace

std::string decode_text(std::string bytes, const std::string& name) {
  if (bytes.starts_with("\xEF\xBB\xBF")) {
    bytes.erase(0, 3);
  } else if (bytes.starts_with("\xFF\xFE")) {
    return from_utf16(std::string_view(bytes).substr(2), true);
  } else if (bytes.starts_with("\xFE\xFF")) {
    return from_utf16(std::string_view(bytes).substr(2), false);
  }
  if (const std::size_t zero = bytes.find('\0'); zero != std::string::npos) {
    // ASCII in UTF-16 has every second byte zero.
    const bool wide = zero <= 1 && bytes.size() > 3 && bytes[zero + 2] == '\0';
    if (wide) {
      throw Error(ErrorCode::kInvalidData, name,
                  "looks like UTF-16; save it as UTF-8 (iconv -f UTF-16{} -t UTF-8)",
                  zero == 1 ? "LE" : "BE");
    }
    throw Error(ErrorCode::kInvalidData, name, "is no text file (zero byte at offset {})", zero);
  }
  return bytes;
}

std::string read_text_file(const std::filesystem::path& path) {
  return decode_text(read_file(path, 1_GiB), path.string());
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string DataFile::text(const std::string& key, const std::string& otherwise) const {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : found->second.text;
}

std::int64_t DataFile::integer(const std::string& key, std::int64_t otherwise,
                               std::int64_t min) const {
  const auto found = values.find(key);
  if (found == values.end()) return otherwise;
  const std::optional<std::int64_t> number = parse_int(found->second.text);
  if (!number) {
    throw Error(ErrorCode::kInvalidConfig, where(key), "{} is '{}', want an integer", key,
                found->second.text);
  }
  if (*number < min)
    throw Error(ErrorCode::kInvalidConfig, where(key), "{} is {}, want >= {}", key, *number, min);
  return *number;
}

std::filesystem::path DataFile::file(const std::string& key, const std::string& otherwise) const {
  const std::filesystem::path written = expand_home(text(key, otherwise));
  if (written.empty() || written.is_absolute() || path_exists(written)) return written;
  const std::filesystem::path beside = path.parent_path() / written;
  if (!path_exists(beside)) return written;
  log::info("{}: {} = {}: not in the working directory, {} is used", where(key), key,
            written.string(), beside.string());
  return beside;
}

std::string DataFile::where(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? path.string() : at_line(path, found->second.line);
}

DataFile parse_data_file(std::string_view text, const std::filesystem::path& path,
                         Diagnostics& diagnostics) {
  DataFile file{.path = path, .values = {}};
  int number = 0;
  for (const std::string_view raw : split_lines(text)) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      diagnostics.error(at_line(path, number), "'{}' has no '=', want key = value", line);
      continue;
    }
    const std::string key(trim(line.substr(0, equals)));
    const std::string value(trim(line.substr(equals + 1)));
    if (key.empty() || value.empty()) {
      diagnostics.error(at_line(path, number), "'{}' has no {}, want key = value", line,
                        key.empty() ? "key" : "value");
      continue;
    }
    if (std::find(kDataKeys.begin(), kDataKeys.end(), key) == kDataKeys.end()) {
      if (const auto near = nearest(key, kDataKeys)) {
        diagnostics.warning(at_line(path, number), "unknown key '{}', did you mean '{}'?", key,
                            *near);
      } else {
        diagnostics.warning(at_line(path, number), "unknown key '{}' is ignored", key);
      }
    }
    const auto [first, inserted] = file.values.emplace(key, DataFile::Value{value, number});
    if (!inserted) {
      diagnostics.warning(at_line(path, number), "{} is given again; the value of line {} counts",
                          key, first->second.line);
    }
  }
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  return file;
}

DataFile read_data_file(const std::filesystem::path& path, Diagnostics& diagnostics) {
  return parse_data_file(read_text_file(path), path, diagnostics);
}

std::vector<std::string> read_names(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  std::vector<std::string> names;
  for (const std::string_view line : split_lines(text)) names.emplace_back(trim(line));
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.empty()) throw Error(ErrorCode::kInvalidData, path.string(), "holds no class name");
  return names;
}

void check_class_counts(int classes, const std::string& cfg_where, const DataFile* data_file,
                        const std::vector<std::string>* names,
                        const std::filesystem::path& names_path, Diagnostics& diagnostics) {
  const auto count = names == nullptr
                         ? std::string()
                         : fmt::format(", {} has {} names", names_path.string(), names->size());
  if (names != nullptr && std::cmp_not_equal(names->size(), classes)) {
    throw Error(ErrorCode::kInvalidData, names_path.string(),
                "holds {} class names, {} has classes={}", names->size(), cfg_where, classes);
  }
  if (data_file == nullptr || !data_file->has("classes")) return;
  const std::int64_t written = data_file->integer("classes", classes);
  if (written != classes) {
    diagnostics.warning(data_file->where("classes"),
                        "classes={}, but {} has classes={}{}; {} is used", written, cfg_where,
                        classes, count, classes);
  }
}

ImageList parse_image_list(std::string_view text, const std::filesystem::path& path,
                           ListForm form) {
  ImageList list{.path = path};
  int number = 0;
  std::unordered_set<std::string> seen;
  std::string moved;
  for (const std::string_view raw : split_lines(text)) {
    ++number;
    std::string_view line = trim(raw);
    if (line.empty() || line.starts_with('#')) continue;
    if (form == ListForm::kWithClasses) {
      const std::size_t tab = line.find('\t');
      list.classes.emplace_back(tab == std::string_view::npos ? "" : trim(line.substr(tab)));
      line = trim(line.substr(0, tab));
    }
    std::string image = expand_home(std::string(line)).string();
    if (!image.starts_with('/') && !path_exists(image)) {
      std::string beside = (path.parent_path() / image).string();
      if (beside != image && path_exists(beside)) {
        if (moved.empty()) moved = image;
        image = std::move(beside);
      }
    }
    if (!seen.insert(image).second) ++list.repeated;
    list.images.push_back(std::move(image));
    list.lines.push_back(number);
  }
  if (list.images.empty()) {
    throw Error(ErrorCode::kInvalidData, path.string(), "has no images; want one path a line");
  }
  if (!moved.empty()) {
    log::info(
        "{}: paths such as {} are not in the working directory; they are taken relative to the "
        "list",
        path.string(), moved);
  }
  return list;
}

ImageList read_image_list(const std::filesystem::path& path, ListForm form) {
  return parse_image_list(read_text_file(path), path, form);
}

}  // namespace lantern::data
