#include "eval/json_string.hpp"

#include <nlohmann/json.hpp>

namespace lantern::eval {

std::string json_string(std::string_view text) {
  using Json = nlohmann::json;
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lantern::eval
