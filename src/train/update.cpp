#include "train/update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lantern::train {

std::optional<std::string> update_unless_faulty(exec::Model& model, double loss,
                                                const ops::RunContext& context,
                                                const data::Batch& batch) {
  std::optional<std::string> gradient;
  if (std::isfinite(loss)) {
    gradient = model.find_non_finite_gradient(context);
    if (!gradient) {
      model.update(context);
      return std::nullopt;
    }
  }
  const std::optional<std::string> tensor = model.find_non_finite_tensor(context);
  model.abandon_iteration();
  std::string images;
  for (std::size_t i = 0; i < std::min<std::size_t>(batch.paths.size(), 4); ++i)
    images += fmt::format("{}{}", i > 0 ? ", " : "", batch.paths[i]);
  return fmt::format("iteration {}: {} is not finite, first in {} (images {}{})", context.iteration,
                     gradient ? "the gradient " + *gradient : "the loss",
                     tensor.value_or("the loss"), images, batch.paths.size() > 4 ? ", ..." : "");
}

}  // namespace lantern::train
