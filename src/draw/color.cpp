#include "draw/color.hpp"

#include <algorithm>
#include <cmath>

namespace lantern::draw {
namespace {

// Relative luminance of sRGB, WCAG 2.1.
double luminance(Color color) {
  const auto linear = [](std::uint8_t value) {
    const double c = value / 255.0;
    return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

}  // namespace

Color class_color(int class_id, int classes) {
  const std::int64_t count = std::max(classes, 1);
  // The multiplier is a large number without small factors: classes with neighbouring numbers get
  // distant colours.
  std::int64_t offset = (static_cast<std::int64_t>(class_id) * 123457) % count;
  if (offset < 0) offset += count;
  // From magenta (300 degrees) down through blue, cyan, green and yellow towards red (0 degrees,
  // excluded).
  const double sector = 5.0 * (1.0 - static_cast<double>(offset) / static_cast<double>(count));
  const auto channel = [sector](double shift) {  // trapezoid of the hue wheel, period 6
    const double k = std::fmod(sector + shift, 6.0);
    const double value = std::clamp(std::abs(k - 3.0) - 1.0, 0.0, 1.0);
    return static_cast<std::uint8_t>(std::lround(255.0 * value));
  };
  return {channel(0.0), channel(4.0), channel(2.0)};
}

Color text_color_on(Color background) {
  const double y = luminance(background);
  const double white = 1.05 / (y + 0.05);
  const double black = (y + 0.05) / 0.05;
  return white > black ? Color{255, 255, 255} : Color{0, 0, 0};
}

}  // namespace lantern::draw
