#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cli/plan_rows.hpp"

namespace lantern::cli {

/// One answer of `lantern plan`: rows of mini-batches for a network and a budget.
struct PlanAnswer {
  const layers::Network& network;
  const Budget& budget;
  std::span<const PlanRow> rows;
  std::int64_t largest =
      0;  ///< mini-batch that fits and is fast enough; 0: not looked for, or none
};

/// What is planned for: network, machine, memory, link ratios.
std::string header_text(const PlanAnswer& answer);
/// The table, a line for each mini-batch.
std::string table_text(const PlanAnswer& answer);
/// What one row holds at its peak, and how a CPU's memory is shared out.
std::string holdings_text(const PlanRow& row, const Budget& budget);
/// The largest mini-batch, what to write into the cfg, and what Darknet would need.
std::string advice_text(const PlanAnswer& answer);

nlohmann::ordered_json to_json(const PlanAnswer& answer);
/// One page without any other file: the table, memory and streams over time.
std::string page_html(const PlanAnswer& answer);

}  // namespace lantern::cli
