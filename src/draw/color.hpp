#pragma once

#include <cstdint>

namespace lantern::draw {

struct Color {
  std::uint8_t r = 0, g = 0, b = 0;
  bool operator==(const Color&) const = default;
};

/// Colour of a class: a function of its number and the number of classes only, hence the same in
/// every run. Any numbers are accepted; out of range ones wrap around.
Color class_color(int class_id, int classes);

/// Black or white, whichever has the larger contrast ratio (WCAG 2.1) against `background`.
Color text_color_on(Color background);

}  // namespace lantern::draw
