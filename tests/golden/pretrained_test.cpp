// Published networks on published pictures against a double-precision forward pass of another
// engine.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "data/image.hpp"
#include "exec/model.hpp"
#include "io/model_weights.hpp"
#include "network_heads.hpp"

namespace lantern::test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  bool in_repository = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

fs::path folder_of(const Case& c) {
  return c.in_repository ? fs::path(LANTERN_TEST_DATA) / "weights"
                         : fs::path(LANTERN_SOURCE_DIR) / ".." / "shared" / "weights";
}

struct Row {
  int class_id = 0;
  double confidence = 0;
  std::array<double, 4> box{};
};

/// Planar values 0..1, as every engine of the set was fed.
std::vector<float> planes(const data::Image& image) {
  std::vector<float> values;
  values.reserve(image.pixels.size());
  for (int c = 0; c < image.c; ++c) {
    for (std::size_t i = static_cast<std::size_t>(c); i < image.pixels.size();
         i += static_cast<std::size_t>(image.c)) {
      values.push_back(static_cast<float>(image.pixels[i]) / 255.0F);
    }
  }
  return values;
}

std::vector<Row> rows_of(const eval::DetectionList& list) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (int c = 0; c < list.classes(); ++c) {
      const float p = list.probabilities(i)[static_cast<std::size_t>(c)];
      const eval::Box& b = list[i].box;
      if (p > 0) rows.push_back({c, p, {b.x, b.y, b.w, b.h}});
    }
  }
  return rows;
}

double distance(const Row& a, const Row& b) {
  if (a.class_id != b.class_id) return INFINITY;
  double worst = std::abs(a.confidence - b.confidence);
  for (std::size_t i = 0; i < 4; ++i) worst = std::max(worst, std::abs(a.box[i] - b.box[i]));
  return worst;
}

// With the batch norms as they are, and folded into the convolutions.
class Pretrained : public ::testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(Pretrained, GivesTheDetectionsOfTheDoublePrecisionPass) {
  constexpr double kTolerance = 1e-4;
  constexpr double kRawTolerance = 1e-3;
  const auto& [c, fold] = GetParam();
  const fs::path folder = folder_of(c);
  if (!fs::exists(folder / c.name))
    GTEST_SKIP() << "the shared weights are not beside the repository";
  layers::Network network = layers::load_network_file(
      (folder / c.name / (c.name + ".cfg")).string(), {.batch = 1, .subdivisions = 1});
  const auto model = std::make_unique<exec::Model>(
      std::move(network),
      exec::ModelOptions{.threads = 2, .plan = {.keep_everything = true}, .fold = fold});
  Diagnostics warnings;
  io::load_weights(*model, folder / c.name / (c.name + ".weights"), io::Purpose::kEvaluation,
                   warnings);
  EXPECT_TRUE(warnings.entries().empty());

  const std::vector<NetworkHead> heads = heads_of(model->network());
  const auto json = nlohmann::json::parse(read_file(folder / "expected" / (c.name + ".json")));
  const auto threshold = json.at("conf_threshold").get<double>();
  int pictures = 0, detections = 0;
  std::size_t raw_heads = 0;
  double worst = 0, worst_raw = 0;
  for (const auto& [picture, expected] : json.at("variants").at("exact-input-bn1e-5").items()) {
    SCOPED_TRACE(picture);
    const data::Image image =
        data::load_image(folder / "expected" / expected.at("input_png").get<std::string>(),
                         {.channels = model->network().net.channels});
    ASSERT_EQ(image.w, model->network().net.width);
    ASSERT_EQ(image.h, model->network().net.height);
    model->executor().poison_transients();
    model->forward(planes(image));
    // The raw heads were kept for one picture.
    const bool is_dog = expected.at("input_png").get<std::string>().starts_with("inputs/dog_");
    std::vector<std::vector<float>> outputs;
    const auto output = [&](int layer) {
      return model->executor().read(
          *model->lowered().forward_outputs[static_cast<std::size_t>(layer)]);
    };
    for (std::size_t i = 0; i < heads.size(); ++i) {
      outputs.push_back(output(heads[i].layer));
      if (!is_dog) continue;
      const std::string bytes =
          read_file(folder / "expected" / "heads" / fmt::format("{}__dog__head{}.f32", c.name, i));
      std::vector<float> reference(bytes.size() / sizeof(float));
      std::memcpy(reference.data(), bytes.data(), bytes.size());
      const std::vector<float> raw = output(heads[i].layer - 1);
      ++raw_heads;
      ASSERT_EQ(raw.size(), reference.size());
      for (std::size_t k = 0; k < raw.size(); ++k) {
        const double error = std::abs(static_cast<double>(raw[k]) - reference[k]);
        ASSERT_TRUE(std::isfinite(error)) << "head " << i << " value " << k;
        worst_raw = std::max(worst_raw, error);
      }
    }
    eval::DetectionList list = decode_heads(model->network(), heads, outputs,
                                            {.threshold = static_cast<float>(threshold)});
    eval::suppress(list, {.threshold = json.at("nms_iou_threshold").get<float>()});
    std::vector<Row> actual = rows_of(list);
    for (const auto& row : expected.at("detections")) {
      const Row want{row.at("class_id"), row.at("confidence"), row.at("box_norm")};
      const auto best = std::ranges::min_element(actual, [&](const Row& a, const Row& b) {
        return distance(a, want) < distance(b, want);
      });
      const double error = best == actual.end() ? INFINITY : distance(*best, want);
      ++detections;
      if (error <= kTolerance) {
        worst = std::max(worst, error);
        actual.erase(best);
      } else if (std::abs(want.confidence - threshold) > kTolerance) {
        ADD_FAILURE() << "class " << want.class_id << " confidence " << want.confidence
                      << " is off by " << error;
      }
    }
    for (const Row& row : actual) {
      EXPECT_LE(std::abs(row.confidence - threshold), kTolerance)
          << "class " << row.class_id << " confidence " << row.confidence << " is too many";
    }
    ++pictures;
  }
  EXPECT_LE(worst_raw, kRawTolerance);
  EXPECT_EQ(raw_heads, heads.size());
  EXPECT_GE(pictures, 6);
  EXPECT_GT(detections, 0);
  fmt::print("{}: {} pictures, {} detections, largest error {:.1e}, of raw heads {:.1e}\n", c.name,
             pictures, detections, worst, worst_raw);
}

INSTANTIATE_TEST_SUITE_P(
    All, Pretrained,
    ::testing::Combine(::testing::Values(Case{"yoloface-50k", true},
                                         Case{"yolo-fastest-1.1_IR_small_1chan_v1", true},
                                         Case{"yolo-fastest-1.1"}, Case{"yolo-fastest-1.1-xl"},
                                         Case{"MobileNetV2-YOLOv3-Nano-coco"},
                                         Case{"MobileNetV2-YOLO-Fastest-voc-v2"},
                                         Case{"yoloface-500k-v2"}),
                       ::testing::Bool()),
    [](const auto& test) {
      std::string name = std::get<0>(test.param).name;
      std::ranges::replace_if(
          name, [](char ch) { return std::isalnum(static_cast<unsigned char>(ch)) == 0; }, '_');
      return name + (std::get<1>(test.param) ? "_folded" : "");
    });

}  // namespace
}  // namespace lantern::test
