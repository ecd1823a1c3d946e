#include <numeric>

#include "io/onnx_builder.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/region/region.hpp"

// Detection heads as nodes: what eval::decode computes, for every box, without thresholds.
namespace lantern::io::onnx {

namespace {

// Every step is of a form that OpenCV's reader knows, too: maps of four axes, constants of the
// whole shape in sums and of one value a channel in products.

// Where a head's boxes lie, and its raw values as [images * anchors, entries, h, w].
struct Grid {
  std::int64_t images = 1, anchors = 1, h = 1, w = 1;
  std::string raw;
  std::int64_t rows() const { return images * anchors; }
  std::int64_t boxes() const { return anchors * h * w; }
};

Grid grid_of(Builder& b, const std::string& raw, const Shape& shape, std::int64_t anchors) {
  Grid grid{.images = shape.n(), .anchors = anchors, .h = shape.h(), .w = shape.w()};
  grid.raw = b.reshape(raw, {grid.rows(), shape.c() / anchors, grid.h, grid.w});
  return grid;
}

// One entry of every box: [images, anchors, h, w].
std::string entry(Builder& b, const Grid& grid, std::int64_t which) {
  return b.reshape(b.slice(grid.raw, which, 1), {grid.images, grid.anchors, grid.h, grid.w});
}

// scale * x + shift + the cell's number, relative to the grid; across: by column, else by row.
std::string centre(Builder& b, const std::string& x, const Grid& grid, bool across, float scale,
                   float shift) {
  b.check_room(grid.rows() * grid.h * grid.w);
  const auto cells = static_cast<float>(across ? grid.w : grid.h);
  std::vector<float> offsets;
  for (std::int64_t row = 0; row < grid.rows() * grid.h; ++row) {
    for (std::int64_t column = 0; column < grid.w; ++column) {
      offsets.push_back((static_cast<float>(across ? column : row % grid.h) + shift) / cells);
    }
  }
  return b.add(b.scaled(x, scale / cells),
               b.constant({grid.images, grid.anchors, grid.h, grid.w}, std::move(offsets)));
}

// x by the side of its anchor: `part` 0 width, 1 height; in units of `unit`.
std::string by_anchor(Builder& b, const std::string& x, const std::vector<float>& anchors,
                      const std::vector<int>& mask, int part, std::int64_t unit) {
  std::vector<float> sides;
  for (const int index : mask) {
    sides.push_back(anchors[static_cast<std::size_t>(2 * index + part)] / static_cast<float>(unit));
  }
  return b.mul(x, b.constant({1, static_cast<std::int64_t>(sides.size()), 1, 1}, sides));
}

// `box`: x, y, w, h as [images, anchors, h, w]; `classes` [rows, classes, h, w], `factor`
// [rows, 1, h, w].
HeadValues values_of(Builder& b, const Grid& grid, const std::vector<std::string>& box,
                     const std::string& classes, const std::string& factor, std::int64_t count) {
  std::vector<std::string> columns;
  for (const std::string& part : box) {
    columns.push_back(b.reshape(part, {grid.images, grid.boxes(), 1}));
  }
  const std::string scores = b.mul(classes, b.spread(factor, count));
  return {b.node("Concat", std::move(columns), {{"axis", std::int64_t{2}}}),
          b.reshape(b.transpose(scores, {0, 2, 3, 1}), {grid.images, grid.boxes(), count})};
}

HeadValues yolo(Builder& b, const ops::YoloParams& p, const Grid& grid) {
  const auto logistic = [&](const std::string& x) {
    return p.new_coords ? x : b.node("Sigmoid", {x});  // new_coords: the convolution applied it
  };
  const auto side = [&](std::int64_t which, int part, std::int64_t net) {
    const std::string t = entry(b, grid, which);
    return by_anchor(b, p.new_coords ? b.scaled(b.mul(t, t), 4) : b.node("Exp", {t}), p.anchors,
                     p.mask, part, net);
  };
  const float shift = -0.5F * (p.scale_x_y - 1);
  const std::vector<std::string> box{
      centre(b, logistic(entry(b, grid, 0)), grid, true, p.scale_x_y, shift),
      centre(b, logistic(entry(b, grid, 1)), grid, false, p.scale_x_y, shift), side(2, 0, p.net_w),
      side(3, 1, p.net_h)};
  return values_of(b, grid, box, logistic(b.slice(grid.raw, 5, p.classes)),
                   logistic(b.slice(grid.raw, 4, 1)), p.classes);
}

HeadValues gaussian(Builder& b, const ops::GaussianParams& params, const Grid& grid) {
  const ops::YoloParams& p = params.yolo;
  const auto position = [&](std::int64_t which) {
    return b.node("Sigmoid", {entry(b, grid, which)});
  };
  const auto sigmoid = [&](std::int64_t first, std::int64_t count = 1) {
    return b.node("Sigmoid", {b.slice(grid.raw, first, count)});
  };
  const auto side = [&](std::int64_t which, int part, std::int64_t net) {
    return by_anchor(b, b.node("Exp", {entry(b, grid, which)}), p.anchors, p.mask, part, net);
  };
  const float shift = -0.5F * (p.scale_x_y - 1);
  const std::string w = side(4, 0, p.net_w), h = side(6, 1, p.net_h);
  std::string x = centre(b, position(0), grid, true, p.scale_x_y, shift);
  std::string y = centre(b, position(2), grid, false, p.scale_x_y, shift);
  if (params.point != ops::GaussianParams::Point::kCenter) {
    const float half = params.point == ops::GaussianParams::Point::kLeftTop ? 0.5F : -0.5F;
    x = b.add(x, b.scaled(w, half));
    y = b.add(y, b.scaled(h, half));
  }
  const std::string doubt = b.add(b.add(sigmoid(1), sigmoid(3)), b.add(sigmoid(5), sigmoid(7)));
  const std::string certainty = b.add(b.scaled(doubt, -0.25F), b.scalar(1));
  return values_of(b, grid, {x, y, w, h}, sigmoid(9, p.classes), b.mul(sigmoid(8), certainty),
                   p.classes);
}

HeadValues region(Builder& b, const ops::RegionParams& p, const Grid& grid) {
  std::vector<int> mask(static_cast<std::size_t>(p.boxes()));
  std::iota(mask.begin(), mask.end(), 0);
  const auto position = [&](std::int64_t which) {
    return b.node("Sigmoid", {entry(b, grid, which)});
  };
  const auto side = [&](std::int64_t which, int part, std::int64_t cells) {
    return by_anchor(b, b.node("Exp", {entry(b, grid, which)}), p.anchors, mask, part, cells);
  };
  const std::vector<std::string> box{centre(b, position(0), grid, true, 1, 0),
                                     centre(b, position(1), grid, false, 1, 0),
                                     side(2, 0, p.grid_w), side(3, 1, p.grid_h)};
  std::string classes = b.slice(grid.raw, 5, p.classes);
  if (p.softmax) classes = b.node("Softmax", {classes}, {{"axis", std::int64_t{1}}});
  return values_of(b, grid, box, classes, b.node("Sigmoid", {b.slice(grid.raw, 4, 1)}), p.classes);
}

}  // namespace

HeadValues head_nodes(Builder& builder, const layers::HeadBinding& head, const std::string& raw,
                      const Shape& shape) {
  builder.set_layer(head.layer);
  if (head.region) {
    return region(builder, *head.region, grid_of(builder, raw, shape, head.region->boxes()));
  }
  if (head.gaussian) {
    return gaussian(builder, *head.gaussian,
                    grid_of(builder, raw, shape, head.gaussian->yolo.anchors_per_cell()));
  }
  return yolo(builder, head.yolo, grid_of(builder, raw, shape, head.yolo.anchors_per_cell()));
}

}  // namespace lantern::io::onnx
