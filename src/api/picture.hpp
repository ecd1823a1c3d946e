#pragma once

#include <span>

#include "data/resize.hpp"
#include "lantern/net.hpp"

namespace lantern::api {

/// The input of a network.
struct InputSpec {
  int width = 0, height = 0, channels = 3;
};

/// The caller's picture as planes of `channels`: bytes divided by 255, RGB, grey repeated or
/// weighed (0.299 R + 0.587 G + 0.114 B). Throws kUsage for what is no picture.
data::Planes planes_of(const ImageView& image, int channels);

/// Scales a picture as detectors see it into out [channels][height][width].
void prepare_detector_input(const ImageView& image, const InputSpec& input, bool letterbox,
                            std::span<float> out);
/// As classifiers see it: the shorter side scaled, the middle taken.
void prepare_classifier_input(const ImageView& image, const InputSpec& input, std::span<float> out);

}  // namespace lantern::api
