// Speed of the training input: bench_loader <image list> [net size] [seconds] [threads].
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"
#include "data/detector_samples.hpp"
#include "data/loader.hpp"

namespace {

using namespace lantern;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void measure(const char* what, std::shared_ptr<const data::Dataset> dataset,
             const data::AugmentSpec& augment, int threads, double seconds) {
  data::TrainingLoader loader(
      {.samples = std::make_shared<data::DetectorSamples>(std::move(dataset), augment),
       .images_per_iteration = 16,
       .threads = threads});
  const double cpu = cpu_seconds();
  const double start = wall_seconds();
  while (wall_seconds() - start < seconds) loader.next();
  const double wall = wall_seconds() - start;
  const auto images = static_cast<double>(loader.stats().images);
  std::fputs(
      fmt::format("{:24} {:7.0f} images/s, {:7.0f} images per CPU second, {:.2f} s waited\n", what,
                  images / wall, images / (cpu_seconds() - cpu), loader.stats().seconds_waited)
          .c_str(),
      stdout);
}

int run(int argc, char** argv) {
  if (argc < 2)
    throw Error(ErrorCode::kUsage, "", "bench_loader <image list> [net size] [seconds] [threads]");
  const auto number = [&](int at, int otherwise) {
    return argc > at ? static_cast<int>(parse_int(argv[at]).value_or(otherwise)) : otherwise;
  };
  const data::ImageList list = data::read_image_list(argv[1]);
  const auto dataset =
      std::make_shared<const data::Dataset>(data::make_dataset(list, data::scan_labels(list, {})));
  data::AugmentSpec augment;
  augment.net_w = augment.net_h = number(2, 416);
  const int threads = number(4, 1);
  const double seconds = number(3, 3);
  augment.jitter = 0.3F;
  measure("crop, resize, flip", dataset, augment, threads, seconds);
  augment.hue = 0.1F;
  augment.saturation = 1.5F;
  augment.exposure = 1.5F;
  measure("and colour", dataset, augment, threads, seconds);
  augment.mix = data::MixKind::kMosaic;
  measure("and mosaic", dataset, augment, threads, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
    return exit_code(error.code());
  }
}
