#include "train/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"

namespace lantern::train {

namespace {
// JSON has no NaN: a value that is not finite becomes null.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}
}  // namespace

Metrics::Metrics(std::filesystem::path log, std::filesystem::path chart, std::string title,
                 std::int64_t max_iterations, double max_chart_loss)
    : log_path_(std::move(log)), chart_path_(std::move(chart)), log_(log_path_, std::ios::app) {
  if (!log_)
    throw Error(ErrorCode::kResource, log_path_.string(), "the metrics log cannot be written");
  std::error_code code;
  if (std::filesystem::is_regular_file(log_path_, code)) {
    log_bytes_ = std::filesystem::file_size(log_path_, code);
    std::ifstream before(log_path_, std::ios::binary);
    if (log_bytes_ > 0 && before.seekg(-1, std::ios::end) && before.get() != '\n') {
      write_line("");  // ends the line in which an earlier run was killed
    }
  }
  const std::filesystem::path folder =
      chart_path_.has_parent_path() ? chart_path_.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, code) ||
      std::filesystem::is_directory(chart_path_, code)) {
    throw Error(
        ErrorCode::kResource, chart_path_.string(), "the chart cannot be written: {}",
        std::filesystem::is_directory(folder, code) ? "it is a folder" : "there is no such folder");
  }
  chart_.title = std::move(title);
  chart_.max_iterations = max_iterations;
  chart_.max_loss = max_chart_loss;
}

void Metrics::add(const IterationRecord& record) {
  chart_.losses.push_back({record.iteration, record.loss, record.average_loss});
  chart_.rates.push_back({record.iteration, record.rate});
  nlohmann::json line{{"schema", 1},
                      {"iteration", record.iteration},
                      {"loss", number(record.loss)},
                      {"average_loss", number(record.average_loss)},
                      {"rate", record.rate},
                      {"seconds", record.seconds},
                      {"seconds_waiting", record.seconds_waiting},
                      {"images", record.images},
                      {"seed", record.seed},
                      {"width", record.width},
                      {"height", record.height}};
  for (const exec::LossReport& loss : record.losses) {
    nlohmann::json head{{"layer", loss.layer}, {"cost", number(loss.cost)}};
    if (loss.yolo) {
      head["count"] = loss.yolo->count;
      head["mean_iou"] = number(loss.yolo->mean_iou());
      head["mean_class"] = number(loss.yolo->mean_class());
      head["objectness_positive"] = number(loss.yolo->mean_objectness_positive());
      head["objectness_negative"] = number(loss.yolo->mean_objectness_negative());
      head["recall50"] = loss.yolo->recall_50();
      head["recall75"] = loss.yolo->recall_75();
      head["box_loss"] = number(loss.yolo->box_squares);
      head["objectness_loss"] = number(loss.yolo->objectness_squares);
      head["class_loss"] = number(loss.yolo->class_squares);
    }
    line["heads"].push_back(std::move(head));
  }
  write_line(line.dump());
}

void Metrics::write_line(const std::string& line) {
  if (!log_.is_open()) return;
  log_ << line << '\n' << std::flush;
  if (log_) {
    log_bytes_ += line.size() + 1;
    return;
  }
  log_.close();
  std::error_code code;
  if (std::filesystem::is_regular_file(log_path_, code))
    std::filesystem::resize_file(log_path_, log_bytes_, code);
  log::warning(
      "{}: the metrics log cannot be written any more (disk full?); training goes on without it",
      log_path_.string());
}

void Metrics::add_evaluation(std::int64_t iteration, const Measured& measured) {
  nlohmann::json line{{"schema", 1}, {"iteration", iteration}};
  for (const auto& [key, value] : measured.numbers) line[key] = number(value);
  for (const auto& [name, value] : measured.percents) {
    add_percent(iteration, name, value);
    line["percents"][name] = number(value);
  }
  write_line(line.dump());
}

void Metrics::add_percent(std::int64_t iteration, const std::string& name, double value) {
  auto series = std::ranges::find(chart_.percents, name, &draw::PercentSeries::name);
  if (series == chart_.percents.end())
    series = chart_.percents.insert(series, draw::PercentSeries{name, {}});
  series->points.push_back({iteration, value});
}

void Metrics::forget_after(std::int64_t iteration) {
  const auto later = [&](const auto& point) { return point.iteration > iteration; };
  std::erase_if(chart_.losses, later);
  std::erase_if(chart_.rates, later);
  for (draw::PercentSeries& series : chart_.percents) std::erase_if(series.points, later);
}

void Metrics::go_on_from(std::int64_t iteration) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(log_path_, code)) return;
  std::ifstream log(log_path_, std::ios::binary);
  std::uintmax_t kept = 0;  // bytes up to the last line of this iteration
  std::uintmax_t read = 0;
  for (std::string text; std::getline(log, text);) {
    read += text.size() + 1;
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("iteration") || !line["iteration"].is_number_integer())
      continue;
    const auto t = line["iteration"].get<std::int64_t>();
    if (t > iteration) continue;
    kept = read;
    const auto value = [&](const char* key) {
      return line.contains(key) && line[key].is_number() ? line[key].get<double>() : std::nan("");
    };
    if (line.contains("loss")) {
      // Of an earlier run, or of what was rolled back.
      if (!chart_.losses.empty() && t <= chart_.losses.back().iteration) forget_after(t - 1);
      chart_.losses.push_back({t, value("loss"), value("average_loss")});
      chart_.rates.push_back({t, value("rate")});
    }
    if (!line.contains("percents") || !line["percents"].is_object()) continue;
    for (const auto& [name, percent] : line["percents"].items()) {
      if (percent.is_number()) add_percent(t, name, percent.get<double>());
    }
  }
  if (kept >= log_bytes_) return;
  log_.close();
  std::filesystem::resize_file(log_path_, kept, code);
  log_.open(log_path_, std::ios::app);
  log_bytes_ = kept;
}

void Metrics::draw_chart(std::optional<double> hours_left) {
  chart_.hours_left = hours_left;
  try {
    write_file_atomically(chart_path_, draw::render_chart(chart_, draw::ChartFormat::kPng));
    std::filesystem::path svg = chart_path_;
    svg.replace_extension(".svg");
    if (svg != chart_path_)
      write_file_atomically(svg, draw::render_chart(chart_, draw::ChartFormat::kSvg));
  } catch (const Error& error) {
    if (!std::exchange(chart_refused_, true))
      log::warning("{}; training goes on without this chart", error.what());
  }
}

}  // namespace lantern::train
