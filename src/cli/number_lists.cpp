#include "cli/number_lists.hpp"

#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::cli {

namespace {

constexpr std::int64_t kMost = 1 << 16;

std::optional<int> side_of(std::string_view text) {
  const auto side = parse_int(trim(text));
  return side && *side >= 1 && *side <= kMost ? std::optional(static_cast<int>(*side))
                                              : std::nullopt;
}

}  // namespace

std::optional<PictureSize> picture_size(std::string_view text) {
  const std::vector<std::string_view> sides = split(text, 'x');
  const auto width = side_of(sides.front());
  const auto height = side_of(sides.back());
  if (sides.size() > 2 || !width || !height) return std::nullopt;
  return PictureSize{*width, *height};
}

std::vector<PictureSize> picture_sizes(std::string_view flag, const std::string& text) {
  std::vector<PictureSize> sizes;
  for (const std::string_view part : split(text, ',')) {
    const auto size = picture_size(part);
    if (!size) {
      throw Error(ErrorCode::kUsage, "",
                  "-{} is '{}', want sides of pictures like 256,512x288, each 1 to {}", flag, text,
                  kMost);
    }
    sizes.push_back(*size);
  }
  return sizes;
}

std::vector<std::int64_t> image_counts(std::string_view flag, const std::string& text) {
  std::vector<std::int64_t> counts;
  for (const std::string_view part : split(text, ',')) {
    const auto count = parse_int(trim(part));
    if (!count || *count < 1 || *count > kMost) {
      throw Error(ErrorCode::kUsage, "",
                  "-{} is '{}', want numbers of images like 8,16,32, each 1 to {}", flag, text,
                  kMost);
    }
    counts.push_back(*count);
  }
  return counts;
}

}  // namespace lantern::cli
