#include "api/c_boxes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "api/c_errors.hpp"
#include "core/error.hpp"
#include "eval/nms.hpp"
#include "eval/results.hpp"
#include "eval/top_k.hpp"

namespace lantern::api {

namespace {

// Memory comes from malloc: it is the caller's, and C frees it.
template <typename T>
T* allocate(std::size_t count) {
  void* memory = std::calloc(std::max<std::size_t>(count, 1), sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

void check(const lantern_detection* dets, int total, int classes) {
  if (total < 0 || classes < 0) {
    throw Error(ErrorCode::kUsage, "detections", "{} of {} classes; neither may be negative", total,
                classes);
  }
  if (total > 0) require(dets, "dets");
  for (int i = 0; i < total; ++i) {
    if (dets[i].classes != classes) {
      throw Error(ErrorCode::kUsage, "dets", "entry {} has {} classes, the call says {}", i,
                  dets[i].classes, classes);
    }
    require(dets[i].prob, "prob");
  }
}

// The list as the evaluation knows it; where an entry came from in place of its cell.
eval::DetectionList list_of(const lantern_detection* dets, int total, int classes) {
  check(dets, total, classes);
  eval::DetectionList list(classes);
  for (int i = 0; i < total; ++i) {
    const lantern_box& box = dets[i].bbox;
    const std::size_t place = list.add(
        {.box = {box.x, box.y, box.w, box.h}, .objectness = dets[i].objectness, .cell = i});
    std::copy_n(dets[i].prob, classes, list.probabilities(place).begin());
  }
  return list;
}

// Puts the entries into the order of the list, with its probabilities and objectness.
void store(const eval::DetectionList& list, lantern_detection* dets) {
  const std::vector<lantern_detection> before(dets, dets + list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    dets[i] = before[static_cast<std::size_t>(list[i].cell)];
    dets[i].objectness = list[i].objectness;
    std::ranges::copy(list.probabilities(i), dets[i].prob);
    dets[i].best_class_idx = list.best_class(i);
  }
}

}  // namespace

lantern_detection* c_detections(const eval::DetectionList& list, float w, float h) {
  const auto free_all = [&list](lantern_detection* dets) {
    lantern_free_detections(dets, static_cast<int>(list.size()));
  };
  std::unique_ptr<lantern_detection, decltype(free_all)> made(
      allocate<lantern_detection>(list.size()), free_all);
  const auto classes = static_cast<std::size_t>(list.classes());
  for (std::size_t i = 0; i < list.size(); ++i) {
    lantern_detection& d = made.get()[i];
    const eval::Box& box = list[i].box;
    d.bbox = {box.x * w, box.y * h, box.w * w, box.h * h};
    d.classes = list.classes();
    d.prob = allocate<float>(classes);
    std::ranges::copy(list.probabilities(i), d.prob);
    d.best_class_idx = list.best_class(i);
    d.objectness = list[i].objectness;
    d.sort_class = -1;
  }
  return made.release();
}

}  // namespace lantern::api

using lantern::api::c_call;

extern "C" {

void lantern_free_detections(lantern_detection* dets, int num) {
  if (dets == nullptr) return;
  for (int i = 0; i < num; ++i) std::free(dets[i].prob);
  std::free(dets);
}

void lantern_free_batch_detections(lantern_det_num_pair* pairs, int num) {
  if (pairs == nullptr) return;
  for (int i = 0; i < num; ++i) lantern_free_detections(pairs[i].dets, pairs[i].num);
  std::free(pairs);
}

void lantern_do_nms_sort(lantern_detection* dets, int total, int classes, float thresh) {
  lantern_diounms_sort(dets, total, classes, thresh, LANTERN_DEFAULT_NMS, 0.6F);
}

void lantern_do_nms_obj(lantern_detection* dets, int total, int classes, float thresh) {
  c_call([&] {
    lantern::eval::DetectionList list = lantern::api::list_of(dets, total, classes);
    lantern::eval::suppress_by_objectness(list, thresh);
    lantern::api::store(list, dets);
  });
}

void lantern_diounms_sort(lantern_detection* dets, int total, int classes, float thresh,
                          lantern_nms_kind kind, float beta) {
  c_call([&] {
    using lantern::eval::NmsKind;
    constexpr NmsKind kKinds[] = {NmsKind::kDefault, NmsKind::kGreedy, NmsKind::kDiou,
                                  NmsKind::kCorners};
    if (kind < LANTERN_DEFAULT_NMS || kind > LANTERN_CORNERS_NMS) {
      throw lantern::Error(lantern::ErrorCode::kUsage, "kind", "is {}, want 0 to 3",
                           static_cast<int>(kind));
    }
    lantern::eval::DetectionList list = lantern::api::list_of(dets, total, classes);
    lantern::eval::suppress(list, {.kind = kKinds[kind], .threshold = thresh, .beta = beta});
    lantern::api::store(list, dets);
  });
}

char* lantern_detection_to_json(const lantern_detection* dets, int num, int classes, char** names,
                                long long frame_id, const char* filename) {
  return c_call(static_cast<char*>(nullptr), [&] {
    const lantern::eval::DetectionList list = lantern::api::list_of(dets, num, classes);
    lantern::api::require(names, "names");
    for (int c = 0; c < classes; ++c) lantern::api::require(names[c], "names");
    const std::vector<std::string> all(names, names + classes);
    lantern::eval::OutputImage image{.frame_id = frame_id};
    if (filename != nullptr) image.filename = filename;
    const std::string text = lantern::eval::output_object(image, list, all);
    char* copy = lantern::api::allocate<char>(text.size() + 1);
    std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
  });
}

void lantern_free_string(char* text) { std::free(text); }

int lantern_top_k(const float* values, int n, int k, int* index) {
  return c_call(-1, [&] {
    lantern::api::require(values, "values");
    lantern::api::require(index, "index");
    if (k < 0 || k > n) {
      throw lantern::Error(lantern::ErrorCode::kUsage, "k", "is {}, want 0 to {}", k, n);
    }
    std::ranges::copy(lantern::eval::top_classes(std::span(values, static_cast<std::size_t>(n)), k),
                      index);
    return k;
  });
}
}
