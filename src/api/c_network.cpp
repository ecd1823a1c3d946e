#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "api/c_boxes.hpp"
#include "api/c_errors.hpp"
#include "api/net_impl.hpp"
#include "api/picture.hpp"
#include "core/error.hpp"
#include "lantern/lantern.h"

using lantern::Net;
using lantern::api::c_call;

/// The network with what its last predict gave.
struct lantern_network {
  lantern_network(const char* cfg, const char* weights, const lantern::LoadOptions& options)
      : net(cfg, weights, options) {}
  Net::Impl net;
  Net::Impl::Outputs outputs;
  std::vector<float> input;  ///< of a full batch
  bool has_run = false;
};

namespace {

std::size_t batch_of(const lantern_network& handle) {
  return static_cast<std::size_t>(handle.net.model->options().forward_batch);
}

float* predict(lantern_network& handle, std::span<const float> input) {
  handle.net.run(input, handle.outputs);
  handle.has_run = true;
  return handle.outputs.last.data();
}

float* predict_image(lantern_network* net, const lantern_image& image, bool letterbox) {
  return c_call(static_cast<float*>(nullptr), [&] {
    lantern::api::require(net, "net");
    net->input.assign(net->net.input_floats() * batch_of(*net), 0.0F);
    lantern::api::prepare_detector_input({.data = image.data,
                                          .width = image.w,
                                          .height = image.h,
                                          .channels = image.c,
                                          .format = lantern::ImageView::Format::kF32Chw},
                                         net->net.input(), letterbox,
                                         std::span(net->input).first(net->net.input_floats()));
    return predict(*net, net->input);
  });
}

// Boxes of one picture before suppression.
lantern_detection* boxes(const Net::Impl& net, const Net::Impl::Outputs& outputs, std::size_t place,
                         int w, int h, float thresh, bool relative, bool letter, int& count) {
  net.require(lantern::NetKind::kDetector, "lantern_get_network_boxes()");
  if (w < 1 || h < 1) {
    throw lantern::Error(lantern::ErrorCode::kUsage, "picture", "is {} x {}", w, h);
  }
  lantern::eval::Inference::Options options{.threshold = thresh, .suppress = false};
  if (letter) options.letterboxed_image = {w, h};
  const lantern::eval::DetectionList list =
      net.list(outputs, static_cast<std::int64_t>(place), options);
  lantern_detection* dets = lantern::api::c_detections(
      list, relative ? 1.0F : static_cast<float>(w), relative ? 1.0F : static_cast<float>(h));
  count = static_cast<int>(list.size());
  return dets;
}

// A number that the network knows; -1 for no network.
template <typename Read>
int number_of(const lantern_network* net, Read read) {
  return c_call(-1, [&] {
    lantern::api::require(net, "net");
    return static_cast<int>(read(*net));
  });
}

}  // namespace

extern "C" {

lantern_network* lantern_load_network(const char* cfg, const char* weights, int clear) {
  return lantern_load_network_custom(cfg, weights, clear, 1);
}

lantern_network* lantern_load_network_custom(const char* cfg, const char* weights, int /*clear*/,
                                             int batch) {
  return c_call(static_cast<lantern_network*>(nullptr), [&] {
    lantern::api::require(cfg, "cfg");
    lantern::api::require(weights, "weights");
    return new lantern_network(cfg, weights, {.batch = batch});
  });
}

void lantern_free_network(lantern_network* net) { delete net; }

int lantern_network_width(const lantern_network* net) {
  return number_of(net, [](const lantern_network& n) { return n.net.input().width; });
}
int lantern_network_height(const lantern_network* net) {
  return number_of(net, [](const lantern_network& n) { return n.net.input().height; });
}
int lantern_network_channels(const lantern_network* net) {
  return number_of(net, [](const lantern_network& n) { return n.net.input().channels; });
}
int lantern_network_classes(const lantern_network* net) {
  return number_of(net, [](const lantern_network& n) { return n.net.classes; });
}
int lantern_network_batch(const lantern_network* net) { return number_of(net, batch_of); }
int lantern_network_outputs(const lantern_network* net) {
  return number_of(net, [](const lantern_network& n) { return n.net.output_floats(); });
}

void lantern_reset_rnn(lantern_network* net) {
  c_call([&] {
    lantern::api::require(net, "net");
    net->net.reset();
  });
}

float* lantern_network_predict(lantern_network* net, const float* input) {
  return c_call(static_cast<float*>(nullptr), [&] {
    lantern::api::require(net, "net");
    lantern::api::require(input, "input");
    return predict(*net, {input, net->net.input_floats() * batch_of(*net)});
  });
}

float* lantern_network_predict_image(lantern_network* net, lantern_image image) {
  return predict_image(net, image, false);
}

float* lantern_network_predict_image_letterbox(lantern_network* net, lantern_image image) {
  return predict_image(net, image, true);
}

lantern_detection* lantern_get_network_boxes(lantern_network* net, int w, int h, float thresh,
                                             float /*hier*/, const int* /*map*/, int relative,
                                             int* num, int letter) {
  if (num != nullptr) *num = 0;
  return c_call(static_cast<lantern_detection*>(nullptr), [&] {
    lantern::api::require(net, "net");
    lantern::api::require(num, "num");
    if (!net->has_run) {
      throw lantern::Error(lantern::ErrorCode::kUsage, "net", "has not run; call predict first");
    }
    return boxes(net->net, net->outputs, 0, w, h, thresh, relative != 0, letter != 0, *num);
  });
}

lantern_det_num_pair* lantern_network_predict_batch(lantern_network* net, lantern_image image,
                                                    int batch, int w, int h, float thresh,
                                                    float /*hier*/, const int* /*map*/,
                                                    int relative, int letter) {
  return c_call(static_cast<lantern_det_num_pair*>(nullptr), [&] {
    lantern::api::require(net, "net");
    lantern::api::require(image.data, "image");
    const lantern::api::InputSpec input = net->net.input();
    if (image.w != input.width || image.h != input.height || image.c != input.channels) {
      throw lantern::Error(lantern::ErrorCode::kUsage, "image",
                           "is {} x {} x {}, the network takes {} x {} x {}", image.w, image.h,
                           image.c, input.width, input.height, input.channels);
    }
    if (batch < 1) throw lantern::Error(lantern::ErrorCode::kUsage, "batch", "is {}", batch);
    const auto total = static_cast<std::size_t>(batch);
    net->net.require_steps(total);
    const auto free_all = [&](lantern_det_num_pair* p) { lantern_free_batch_detections(p, batch); };
    std::unique_ptr<lantern_det_num_pair, decltype(free_all)> pairs(
        static_cast<lantern_det_num_pair*>(std::calloc(total, sizeof(lantern_det_num_pair))),
        free_all);
    if (pairs == nullptr) throw std::bad_alloc();
    const std::size_t one = net->net.input_floats();
    std::vector<float> own(one * batch_of(*net));
    Net::Impl::Outputs outputs;  // not the handle's: several threads may be here
    for (std::size_t first = 0; first < total; first += batch_of(*net)) {
      const std::size_t here = std::min(batch_of(*net), total - first);
      std::copy_n(image.data + first * one, here * one, own.begin());
      net->net.run(own, outputs);
      for (std::size_t i = 0; i < here; ++i) {
        lantern_det_num_pair& pair = pairs.get()[first + i];
        pair.dets = boxes(net->net, outputs, i, w, h, thresh, relative != 0, letter != 0, pair.num);
      }
    }
    return pairs.release();
  });
}
}
