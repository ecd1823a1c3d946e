#include "cli/detector.hpp"
#include "eval/list_inference.hpp"
#include "eval/valid_writers.hpp"

namespace lantern::cli {

int run_detector_valid(const Arguments& arguments, Terminal& terminal) {
  watch_interrupts();
  const DetectorFiles files =
      read_detector_files(arguments.positionals[0], arguments.positionals[1], terminal);
  const data::ImageList list = data::read_image_list(validation_list(files.data_file, terminal));
  const auto writer = eval::make_valid_writer(files.data_file.text("eval", "voc"),
                                              {.folder = files.data_file.file("results", "results"),
                                               .name = arguments.text("out"),
                                               .names = files.names});
  const auto model =
      load_for_inference(files.network, arguments.positionals[2], arguments, terminal);
  eval::Inference inference(*model);
  const layers::NetSpec& net = files.network.net;
  const bool letter_box = net.letter_box != 0;
  std::int64_t bad = 0;
  const auto use = [&](const eval::ListImage& image) {
    const data::EvalItem& item = image.item;
    if (!item.error.empty()) {
      terminal.error(item.error);
      ++bad;
      return;
    }
    // reference/training.md 16.1: low threshold, looser suppression than map.
    eval::Inference::Options decoding{.threshold = 0.001F, .nms_threshold = 0.6F};
    if (letter_box) decoding.letterboxed_image = {item.image_w, item.image_h};
    writer->add_image(list.images[static_cast<std::size_t>(item.index)],
                      {item.image_w, item.image_h}, inference.detections(image.place, decoding));
  };
  const auto start = std::chrono::steady_clock::now();
  eval::run_list(*model, inference,
                 {.images = list.images,
                  .letter_box = letter_box,
                  .exif = net.exif == layers::Exif::kApply,
                  .threads = loader_threads(arguments)},
                 use, [&](std::int64_t done, std::int64_t total, double rate) {
                   stop_if_interrupted(terminal);
                   terminal.progress("valid", done, total, rate, "images/s");
                 });
  writer->finish();
  terminal.notice(
      fmt::format("Total Detection Time: {:.0f} Seconds",
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
  return bad_images_code(bad, static_cast<std::int64_t>(list.images.size()), arguments, terminal);
}

}  // namespace lantern::cli
