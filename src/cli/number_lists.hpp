#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::cli {

/// Width and height of pictures; px.
struct PictureSize {
  int width = 0, height = 0;
};

/// "608x416", or "608" for a square; nothing for other texts and for sides over 65536.
std::optional<PictureSize> picture_size(std::string_view text);

/// "256,512x288"; throws kUsage in the name of `flag`.
std::vector<PictureSize> picture_sizes(std::string_view flag, const std::string& text);

/// "8,16,32", numbers of images; throws kUsage in the name of `flag`.
std::vector<std::int64_t> image_counts(std::string_view flag, const std::string& text);

}  // namespace lantern::cli
