#include "eval/class_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace lantern::eval {

namespace {

using nlohmann::ordered_json;

// JSON has no NaN: a score that is not finite becomes null.
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

ordered_json class_entry(int id, std::span<const std::string> names) {
  return {{"class_id", id}, {"name", names[static_cast<std::size_t>(id)]}};
}

// Paths and names come in any encoding; what is not UTF-8 is replaced, the document stays valid.
std::string dump(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string class_text(std::span<const float> scores, std::span<const std::string> names, int k) {
  std::string text;
  for (const int id : top_classes(scores, k)) {
    const auto i = static_cast<std::size_t>(id);
    text += fmt::format("{}: {:f}\n", names[i], scores[i]);
  }
  return text;
}

struct PredictionsJson::State {
  std::vector<std::string> names;
  ordered_json images = ordered_json::array();
};

PredictionsJson::PredictionsJson(std::span<const std::string> names)
    : state_(std::make_unique<State>()) {
  state_->names.assign(names.begin(), names.end());
}
PredictionsJson::~PredictionsJson() = default;

void PredictionsJson::add(const std::string& path, int width, int height,
                          std::span<const float> scores, int k,
                          const std::optional<std::string>& error) {
  ordered_json image{{"path", path}, {"width", width}, {"height", height}};
  image["classes"] = ordered_json::array();
  if (error) {
    image["error"] = *error;
  } else {
    for (const int id : top_classes(scores, k)) {
      ordered_json entry = class_entry(id, state_->names);
      entry["confidence"] = number(scores[static_cast<std::size_t>(id)]);
      image["classes"].push_back(std::move(entry));
    }
  }
  state_->images.push_back(std::move(image));
}

std::string PredictionsJson::text() const {
  return dump({{"schema", 1}, {"images", state_->images}});
}

struct ValidationJson::State {
  std::vector<std::string> names;
  ordered_json predictions = ordered_json::array();
};

ValidationJson::ValidationJson(std::span<const std::string> names)
    : state_(std::make_unique<State>()) {
  state_->names.assign(names.begin(), names.end());
}
ValidationJson::~ValidationJson() = default;

void ValidationJson::add(const std::string& path, int truth, std::span<const float> scores) {
  const int id = top_classes(scores, 1).front();
  state_->predictions.push_back({{"path", path},
                                 {"truth", truth},
                                 {"class_id", id},
                                 {"confidence", number(scores[static_cast<std::size_t>(id)])}});
}

std::string ValidationJson::text(const TopK& accuracy, const std::string& view,
                                 std::int64_t left_out) const {
  ordered_json json{{"schema", 1},
                    {"view", view},
                    {"images", accuracy.images()},
                    {"left_out", left_out},
                    {"top1", accuracy.top1()},
                    {"top", accuracy.k()},
                    {"topk", accuracy.topk()}};
  json["classes"] = ordered_json::array();
  for (std::size_t c = 0; c < accuracy.classes().size(); ++c) {
    ordered_json entry = class_entry(static_cast<int>(c), state_->names);
    entry["images"] = accuracy.classes()[c].images;
    entry["top1"] = accuracy.classes()[c].top1();
    json["classes"].push_back(std::move(entry));
  }
  json["predictions"] = state_->predictions;
  return dump(json);
}

}  // namespace lantern::eval
