#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = RouteSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "layers",
      .field = &S::layers,
      .otherwise = cfg::Required{},
      .doc = "Layers whose channels are joined, in this order; negative: relative to this layer."},
    K{.name = "groups",
      .field = &S::groups,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Split every source into so many equal channel slices."},
    K{.name = "group_id",
      .field = &S::group_id,
      .min = 0,
      .max = kMaxFilters,
      .doc = "The slice taken of each source."},
    K{.name = "stream",
      .field = &S::stream,
      .otherwise = -1,
      .doc = "Accepted; the planner orders layers itself."},
    K{.name = "wait_stream",
      .field = &S::wait_stream,
      .otherwise = -1,
      .doc = "Accepted; the planner orders layers itself."},
};

void finish(S& s, cfg::SectionReader& reader) {
  if (s.group_id >= s.groups) {
    reader.diagnostics().error(reader.where("group_id"),
                               "[route] group_id is {}, want 0..{} with groups={}", s.group_id,
                               s.groups - 1, s.groups);
  }
}

void references(const Spec& spec, std::vector<Reference>& out) {
  for (const int layer : std::get<S>(spec).layers) out.push_back({"layers", layer});
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  if (layer.sources.empty()) return;  // `layers` is missing, which has been said
  const Layer& first = context.layer(layer.sources.front());
  layer.in = first.out;
  layer.in.c = 0;
  std::int64_t channels = 0;
  bool fits = true;
  for (const int index : layer.sources) {
    const Layer& source = context.layer(index);
    fits = context.joins(layer, "layers", first, source) && fits;
    if (source.out.c % s.groups != 0) {
      context.error(layer, "groups", "groups={} does not divide the {} channels of layer {} ({})",
                    s.groups, source.out.c, source.index, source.where);
      fits = false;
    }
    layer.in.c += source.out.c;
    channels += source.out.c / s.groups;
  }
  if (fits) layer.out = {first.out.w, first.out.h, channels};
}

}  // namespace

extern const LayerDef kRoute;
const LayerDef kRoute{.name = "route",
                      .aliases = {},
                      .doc = "Joins the channels of earlier layers.",
                      .keys = keys_of<S, kKeys>,
                      .read = read_as<S, kKeys, finish>,
                      .references = references,
                      .shape = shape,
                      .parameters = nullptr,
                      .ignores_input = true};

}  // namespace lantern::layers
