#pragma once

#include <string>
#include <string_view>

namespace lantern::eval {

/// `text` as a JSON string with its quotes. Names and paths come in any encoding; what is not UTF-8
/// is replaced.
std::string json_string(std::string_view text);

}  // namespace lantern::eval
