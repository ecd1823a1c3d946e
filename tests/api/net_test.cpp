#include "lantern/net.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>

#include "api/classifier_file.hpp"
#include "core/file.hpp"
#include "data/image.hpp"
#include "data/resize.hpp"
#include "eval/inference.hpp"
#include "exec/model.hpp"
#include "io/model_weights.hpp"

namespace lantern::test {
namespace {

namespace fs = std::filesystem;

const fs::path kWeights = fs::path(LANTERN_TEST_DATA) / "weights";
const std::string kFaceCfg = kWeights / "yoloface-50k" / "yoloface-50k.cfg";
const std::string kFaceWeights = kWeights / "yoloface-50k" / "yoloface-50k.weights";

data::Image picture(const std::string& name) {
  return data::load_image(kWeights / "expected" / "inputs" / name);
}
ImageView view_of(const data::Image& image) {
  return {.data = image.pixels.data(), .width = image.w, .height = image.h, .channels = image.c};
}

// What the command line gives for the picture, made from the parts below the interface.
eval::DetectionList expected_list(const data::Image& image, bool letterbox, float threshold) {
  exec::Model model(layers::load_network_file(kFaceCfg, {.batch = 1, .subdivisions = 1}),
                    {.fold = true});
  Diagnostics warnings;
  io::load_weights(model, kFaceWeights, io::Purpose::kEvaluation, warnings);
  eval::Inference inference(model);
  const data::Planes input = data::prepare_eval_image(
      image, {.net_w = 56, .net_h = 56, .channels = 3, .letter_box = letterbox});
  inference.run(input.data, 1);
  eval::Inference::Options options{.threshold = threshold};
  if (letterbox) options.letterboxed_image = {image.w, image.h};
  return inference.detections(0, options);
}

data::Image wide_picture() {
  const data::Image dog = picture("dog_56x56.png");
  data::Image wide{.w = 101, .h = 60, .c = 3};
  wide.pixels.resize(wide.row_bytes() * 60);
  for (int y = 0; y < wide.h; ++y) {
    for (int x = 0; x < wide.w; ++x) {
      for (int c = 0; c < 3; ++c) {
        wide.row(y)[x * 3 + c] = dog.row(y * 55 / 59)[x * 55 / 100 * 3 + c];
      }
    }
  }
  return wide;
}

TEST(Net, KnowsItsNetwork) {
  const Net net = Net::load(kFaceCfg, kFaceWeights);
  EXPECT_EQ(net.kind(), NetKind::kDetector);
  EXPECT_EQ(net.width(), 56);
  EXPECT_EQ(net.height(), 56);
  EXPECT_EQ(net.channels(), 3);
  EXPECT_EQ(net.batch(), 1);
  EXPECT_EQ(net.classes(), 1);
  EXPECT_GT(net.memory_bytes(), 100000);
  EXPECT_TRUE(net.names().empty());
  EXPECT_GT(std::string(version()).size(), 4U);
}

TEST(Net, DetectsWhatTheCommandLineDetects) {
  const Net net = Net::load(kFaceCfg, kFaceWeights);
  const data::Image image = wide_picture();
  for (const bool letterbox : {false, true}) {
    const eval::DetectionList want = expected_list(image, letterbox, 0.1F);
    const std::vector<Detection> found = net.detect(
        view_of(image),
        {.threshold = 0.1F, .pixels = true, .all_probabilities = true, .letterbox = letterbox});
    std::size_t alive = 0;
    for (std::size_t i = 0; i < want.size(); ++i) alive += want.best_class(i) >= 0 ? 1 : 0;
    ASSERT_EQ(found.size(), alive);
    ASSERT_GT(found.size(), 0U);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].confidence, want.best_probability(i));
      EXPECT_EQ(found[i].class_id, want.best_class(i));
      EXPECT_EQ(found[i].objectness, want[i].objectness);
      EXPECT_EQ(found[i].box.x, want[i].box.x * 101);
      EXPECT_EQ(found[i].box.height, want[i].box.h * 60);
      ASSERT_EQ(found[i].probabilities.size(), 1U);
    }
  }
}

TEST(Net, TakesFloatsBgrAndRowsWithGaps) {
  const Net net = Net::load(kFaceCfg, kFaceWeights);
  const data::Image image = wide_picture();
  const auto want = net.detect(view_of(image), {.threshold = 0.1F});
  ASSERT_FALSE(want.empty());
  const auto expect_same = [&](const ImageView& view) {
    const auto found = net.detect(view, {.threshold = 0.1F});
    ASSERT_EQ(found.size(), want.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].confidence, want[i].confidence);
      EXPECT_EQ(found[i].box.x, want[i].box.x);
    }
  };
  const data::Planes planes = data::to_planes(image);
  expect_same({.data = planes.data.data(),
               .width = image.w,
               .height = image.h,
               .format = ImageView::Format::kF32Chw});
  std::vector<std::uint8_t> bgr(static_cast<std::size_t>(image.h) * 400, 77);
  for (int y = 0; y < image.h; ++y) {
    for (int x = 0; x < image.w; ++x) {
      for (int c = 0; c < 3; ++c) {
        bgr[static_cast<std::size_t>(y * 400 + x * 3 + c)] = image.row(y)[x * 3 + 2 - c];
      }
    }
  }
  expect_same({.data = bgr.data(),
               .width = image.w,
               .height = image.h,
               .order = ImageView::Order::kBgr,
               .row_bytes = 400});
}

TEST(Net, GivesTheSameInBatches) {
  const Net one = Net::load(kFaceCfg, kFaceWeights);
  const Net three = Net::load(kFaceCfg, kFaceWeights, {.batch = 3});
  std::vector<data::Image> images{wide_picture()};
  for (const char* name : {"dog_56x56.png", "eagle_56x56.png", "person_56x56.png"}) {
    images.push_back(picture(name));
  }
  std::vector<ImageView> views;
  for (const data::Image& image : images) views.push_back(view_of(image));
  const auto found = three.detect(views, {.threshold = 0.1F});
  ASSERT_EQ(found.size(), views.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto want = one.detect(views[i], {.threshold = 0.1F});
    ASSERT_EQ(found[i].size(), want.size());
    total += want.size();
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_NEAR(found[i][k].confidence, want[k].confidence, 1e-5);
    }
  }
  EXPECT_GT(total, 3U);
  EXPECT_TRUE(three.detect(std::span<const ImageView>()).empty());
}

TEST(Net, SuppressesAsAsked) {
  const Net net = Net::load(kFaceCfg, kFaceWeights);
  const data::Image image = picture("dog_56x56.png");
  const auto all = net.detect(view_of(image), {.threshold = 0.05F, .nms = Nms::kNone});
  const auto few = net.detect(view_of(image), {.threshold = 0.05F, .nms_threshold = 0.3F});
  EXPECT_LT(few.size(), all.size());
  EXPECT_EQ(net.detect(view_of(image), {.threshold = 0.05F, .nms_threshold = 1.0F}).size(),
            all.size());
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_GE(all[i - 1].confidence, all[i].confidence);
  }
}

TEST(Net, ReadsNames) {
  const TemporaryFolder folder;
  const std::string names = folder.path() / "face.names";
  write_file_atomically(names, "face\n");
  EXPECT_EQ(Net::load(kFaceCfg, kFaceWeights, {.names = names}).names(),
            std::vector<std::string>{"face"});
  write_file_atomically(names, "face\nhand\n");
  EXPECT_THROW(Net::load(kFaceCfg, kFaceWeights, {.names = names}), Exception);
}

TEST(Net, TakesAnotherInputSize) {
  const Net net = Net::load(kFaceCfg, kFaceWeights, {.width = 96, .height = 64});
  EXPECT_EQ(net.width(), 96);
  EXPECT_EQ(net.height(), 64);
  const data::Image image = picture("dog_56x56.png");
  EXPECT_FALSE(net.detect(view_of(image), {.threshold = 0.05F}).empty());
}

TEST(Net, ClassifiesTheMiddleOfThePicture) {
  const TemporaryFolder folder;
  write_classifier(folder.path());
  const std::string cfg = folder.path() / "net.cfg", weights = folder.path() / "net.weights";
  const Net net = Net::load(cfg, weights, {.batch = 2});
  EXPECT_EQ(net.kind(), NetKind::kClassifier);
  EXPECT_EQ(net.classes(), 5);
  EXPECT_EQ(net.output_size(), 5);
  const data::Image image = wide_picture();
  const data::Planes input = data::classifier_eval_crop(data::to_planes(image), 24, 16);
  const std::vector<float> want = net.predict(input.data);
  ASSERT_EQ(want.size(), 5U);
  EXPECT_NEAR(std::accumulate(want.begin(), want.end(), 0.0), 1, 1e-5);

  const auto all = net.classify(view_of(image), 0);
  ASSERT_EQ(all.size(), 5U);
  for (const ClassScore& entry : all) {
    EXPECT_EQ(entry.score, want[static_cast<std::size_t>(entry.class_id)]);
  }
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i - 1].score, all[i].score);
  EXPECT_GT(all[0].score, all[4].score);
  EXPECT_EQ(net.classify(view_of(image), 2).size(), 2U);
  const std::vector<ImageView> three(3, view_of(image));
  for (const auto& found : net.classify(three, 1)) EXPECT_EQ(found.at(0).class_id, all[0].class_id);
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& error) {
    EXPECT_FALSE(error.message().empty());
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

TEST(Net, FailsWithOneType) {
  EXPECT_EQ(code_of([] { Net::load("/nowhere.cfg", kFaceWeights); }), ErrorCode::kInvalidData);
  EXPECT_EQ(code_of([] { Net::load(kFaceCfg, "/nowhere.weights"); }), ErrorCode::kInvalidData);
  EXPECT_EQ(code_of([] { Net::load(kFaceCfg, kFaceCfg); }), ErrorCode::kInvalidData);
  EXPECT_EQ(code_of([] { Net::load(kFaceCfg, kFaceWeights, {.batch = 0}); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([] { Net::load(kFaceCfg, kFaceWeights, {.width = 2000000000}); }),
            ErrorCode::kUsage);
  EXPECT_EQ(code_of([] { Net::load(kFaceCfg, kFaceWeights, {.threads = -1}); }), ErrorCode::kUsage);
  const TemporaryFolder folder;
  const std::string bad = folder.path() / "bad.cfg";
  write_file_atomically(bad, "[net]\nwidth=32\nheight=32\nchannels=3\n[maxpool]\nsize=x\n");
  try {
    Net::load(bad, kFaceWeights);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_NE(std::string(error.what()).find("bad.cfg:6"), std::string::npos) << error.what();
  }
  const Net net = Net::load(kFaceCfg, kFaceWeights);
  const data::Image image = picture("dog_56x56.png");
  const auto usage = [&](ImageView view) {
    EXPECT_EQ(code_of([&] { static_cast<void>(net.detect(view)); }), ErrorCode::kUsage);
  };
  ImageView view = view_of(image);
  view.data = nullptr;
  usage(view);
  view = view_of(image);
  view.width = 0;
  usage(view);
  view = view_of(image);
  view.channels = 4;
  usage(view);
  view = view_of(image);
  view.row_bytes = 10;
  usage(view);
  EXPECT_EQ(code_of([&] { static_cast<void>(net.classify(view_of(image))); }), ErrorCode::kUsage);
  const std::vector<float> few(10);
  EXPECT_EQ(code_of([&] { static_cast<void>(net.predict(few)); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace lantern::test
