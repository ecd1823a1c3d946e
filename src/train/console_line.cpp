#include "train/console_line.hpp"

#include <fmt/format.h>

#include <variant>

namespace lantern::train {

double printed_cost(const RunSetup& setup, std::span<const exec::LossReport> losses) {
  const auto is_softmax = [&](const exec::LossReport& loss) {
    const layers::Layer& layer = setup.network.layers[static_cast<std::size_t>(loss.layer)];
    return std::holds_alternative<layers::SoftmaxSpec>(layer.spec);
  };
  double all = 0, entropy = 0;
  int softmaxes = 0;
  for (const exec::LossReport& loss : losses) {
    all += loss.cost;
    if (!is_softmax(loss)) continue;
    entropy += loss.cost;
    ++softmaxes;
  }
  if (setup.kind == NetworkKind::kClassifier && softmaxes > 0) return entropy / softmaxes;
  return all / static_cast<double>(losses.size());
}

std::string iteration_line(const RunSetup& setup, const IterationRecord& record,
                           double hours_left) {
  if (setup.kind == NetworkKind::kDetector) {
    return fmt::format(
        "\n {}: {:f}, {:f} avg loss, {:f} rate, {:f} seconds, {} images, {:f} hours left",
        record.iteration, record.loss, record.average_loss, record.rate, record.seconds,
        record.images, hours_left);
  }
  // Darknet prints CPU time here; these are seconds of the clock.
  return fmt::format(
      "{}, {:.3f}: {:f}, {:f} avg, {:f} rate, {:f} seconds, {} images, {:f} hours left",
      record.iteration, static_cast<double>(record.images) / setup.images_per_epoch(), record.loss,
      record.average_loss, record.rate, record.seconds, record.images, hours_left);
}

}  // namespace lantern::train
