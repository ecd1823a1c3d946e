#include "plan/stock_plans.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "layers/lower.hpp"
#include "ops/select.hpp"
#include "plan/cost.hpp"
#include "plan/devices.hpp"

namespace lantern::plan::test {

std::vector<StockNet> stock_nets() {
  return {{"yolov3-tiny", 32}, {"yolov4-tiny", 32},          {"yolov3-spp", 64},
          {"yolov4", 16},      {"yolov4-csp", 16},           {"resnet50", 64},
          {"darknet19", 64},   {"csresnext50-panet-spp", 16}};
}

DeviceSpec stock_device() { return find_preset("rtx2070").value(); }

StockPlanner::StockPlanner(const StockNet& net) {
  const layers::Network network =
      layers::load_network_file(LANTERN_TEST_DATA "/cfg/" + net.name + ".cfg");
  const layers::Lowered lowered =
      layers::lower(network, {.training = true, .mini_batch = net.mini_batch, .forward_batch = 0});
  // One block size for all machines, so that plans are the same everywhere.
  selected_ = ops::select(lowered.graph, {.threads = 1, .block = 16}).selected;
  const DeviceSpec device = stock_device();
  set_costs(selected_, device);
  options_.host_memory = device.host_memory;
  options_.host = device.host;
  options_.contention = device.contention;
  options_.op_seconds = device.op_seconds;
  unlimited_ = make_program(selected_, options_);
  least_ = smallest_memory(selected_, options_);
}

Program StockPlanner::plan(Bytes memory) const {
  PlanOptions options = options_;
  options.memory = memory;
  return make_program(selected_, options);
}

std::uint32_t StockPlanner::kernels() const {
  std::string names;
  for (const graph::SelectedOp& op : selected_.ops) names += op.op + op.kernel + '\n';
  return stream_id(names);
}

namespace {
std::string path_of(const StockNet& net) {
  return std::string(LANTERN_TEST_DATA "/plans/") + net.name + ".txt";
}
}  // namespace

StockCorpus read_corpus(const StockNet& net) {
  StockCorpus corpus;
  std::ifstream file(path_of(net));
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    if (line.starts_with("kernels")) {
      words >> line >> corpus.kernels;
    } else if (line.starts_with("least")) {
      words >> line >> corpus.least;
    } else {
      StockRecord r;
      words >> r.memory >> r.seconds >> r.peak >> r.host >> r.chunks;
      corpus.plans.push_back(r);
    }
    if (words.fail()) throw Error(ErrorCode::kInvalidConfig, path_of(net), "no plan: {}", line);
  }
  return corpus;
}

void write_corpus(const StockNet& net, const StockCorpus& corpus) {
  std::ofstream file(path_of(net));
  file << fmt::format(
      "# {} mini-batch {} on {} with host memory, analytic costs.\n"
      "# Written by LANTERN_WRITE_PLANS=1 test_plan_nets --gtest_filter='*StockPlans*'.\n"
      "kernels {}\nleast {}\n"
      "# memory  predicted seconds  live peak  host bytes  chunks\n",
      net.name, net.mini_batch, stock_device().name, corpus.kernels, corpus.least);
  for (const StockRecord& r : corpus.plans)
    file << fmt::format("{} {:.6f} {} {} {}\n", r.memory, r.seconds, r.peak, r.host, r.chunks);
  if (!file.flush()) throw Error(ErrorCode::kResource, path_of(net), "cannot be written");
}

}  // namespace lantern::plan::test
