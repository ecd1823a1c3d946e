#include "train/augmented_sheet.hpp"

#include <algorithm>

#include "core/file.hpp"
#include "draw/contact_sheet.hpp"

namespace lantern::train {

namespace {

constexpr std::size_t kTruthColumns = 6;  // x, y, w, h, class, track

// Planes of [0, 1] to interleaved bytes; one plane is grey.
draw::RgbPicture to_picture(std::span<const float> planes, int channels, int width, int height) {
  draw::RgbPicture picture{.width = width, .height = height, .pixels = {}};
  const auto area = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  picture.pixels.resize(3 * area);
  for (std::size_t c = 0; c < 3; ++c) {
    const auto plane = planes.subspan(channels >= 3 ? c * area : 0, area);
    for (std::size_t i = 0; i < area; ++i) {
      picture.pixels[3 * i + c] =
          static_cast<std::uint8_t>(std::clamp(plane[i], 0.0F, 1.0F) * 255 + 0.5F);
    }
  }
  return picture;
}

std::vector<draw::LabelledBox> to_boxes(std::span<const float> rows,
                                        std::span<const std::string> names) {
  std::vector<draw::LabelledBox> boxes;
  for (; rows.size() >= kTruthColumns && rows[2] > 0;
       rows = rows.subspan(kTruthColumns)) {  // w is 0: no more
    const auto id = static_cast<std::size_t>(rows[4]);
    boxes.push_back({rows[0], rows[1], rows[2], rows[3], static_cast<int>(rows[4]),
                     id < names.size() ? names[id] : std::to_string(id)});
  }
  return boxes;
}

// "daisy 0.75, tulips 0.25": the classes that a picture shows, without what smoothing adds.
std::string classes_text(std::span<const float> truth, std::span<const std::string> names) {
  const float least = *std::ranges::min_element(truth);
  std::string text;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] <= least) continue;
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", names[i], truth[i]);
  }
  return text;
}

}  // namespace

std::int64_t save_augmented_sheet(data::LoaderSpec spec, std::int64_t count, const RunSetup& setup,
                                  const std::filesystem::path& path) {
  const std::int64_t last = spec.last_iteration;
  const auto truth_row = static_cast<std::int64_t>(spec.samples->shape().truth_floats);
  const std::span<const std::string> names = setup.names;
  spec.queue = 1;
  std::vector<draw::RgbPicture> pictures;
  std::vector<std::string> captions;
  std::int64_t iteration = spec.first_iteration;
  data::TrainingLoader loader(std::move(spec));
  for (; (last < 0 || iteration < last) && std::ssize(pictures) < count; ++iteration) {
    const data::Batch& batch = loader.next();
    const std::int64_t floats = std::int64_t{batch.channels} * batch.net_w * batch.net_h;
    for (std::int64_t i = 0; i < batch.count && std::ssize(pictures) < count; ++i) {
      const auto planes = batch.images.subspan(static_cast<std::size_t>(i * floats),
                                               static_cast<std::size_t>(floats));
      const auto rows = batch.truth.subspan(static_cast<std::size_t>(i * truth_row),
                                            static_cast<std::size_t>(truth_row));
      draw::RgbPicture& picture =
          pictures.emplace_back(to_picture(planes, batch.channels, batch.net_w, batch.net_h));
      std::string caption =
          std::filesystem::path(batch.paths[static_cast<std::size_t>(i)]).filename().string();
      if (setup.kind == NetworkKind::kDetector) {
        draw::draw_detections(picture.view(), to_boxes(rows, names),
                              static_cast<int>(names.size()));
      } else {
        caption += ": " + classes_text(rows, names);
      }
      captions.push_back(std::move(caption));
    }
    loader.release();
  }
  std::vector<draw::SheetCell> cells;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    cells.push_back({pictures[i].width, pictures[i].height, pictures[i].pixels, captions[i]});
  }
  draw::RgbPicture sheet = draw::contact_sheet(cells);
  data::Image image{.w = static_cast<int>(sheet.width),
                    .h = static_cast<int>(sheet.height),
                    .c = 3,
                    .pixels = std::move(sheet.pixels)};
  AtomicFile file(path);
  file.write(std::span<const std::byte>(data::encode_png(image)));
  file.commit();
  return std::ssize(pictures);
}

}  // namespace lantern::train
