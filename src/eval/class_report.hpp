#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "eval/top_k.hpp"

namespace lantern::eval {

/// Text of `classifier predict` for one picture: a line `name: probability` for each of the first
/// `k` classes.
std::string class_text(std::span<const float> scores, std::span<const std::string> names, int k);

/// The JSON of `classifier predict` (docs/cli.md).
class PredictionsJson {
 public:
  explicit PredictionsJson(std::span<const std::string> names);
  ~PredictionsJson();
  PredictionsJson(const PredictionsJson&) = delete;
  PredictionsJson& operator=(const PredictionsJson&) = delete;

  /// With `error` the picture could not be read and has no classes.
  void add(const std::string& path, int width, int height, std::span<const float> scores, int k,
           const std::optional<std::string>& error);
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The JSON of `classifier valid`: totals, every class, every picture with the class it was given.
class ValidationJson {
 public:
  explicit ValidationJson(std::span<const std::string> names);
  ~ValidationJson();
  ValidationJson(const ValidationJson&) = delete;
  ValidationJson& operator=(const ValidationJson&) = delete;

  void add(const std::string& path, int truth, std::span<const float> scores);
  /// `view` names how the pictures were looked at; `left_out` could not be used.
  std::string text(const TopK& accuracy, const std::string& view, std::int64_t left_out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lantern::eval
