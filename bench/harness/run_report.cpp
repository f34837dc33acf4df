#include "harness/run_report.hpp"

#include <utility>

#include "cli/output.hpp"
#include "harness/csv.hpp"
#include "shard/dataset.hpp"

namespace shard::bench {

Report::Report(const std::string& benchmark, const std::string& command, const Machine& machine,
               Outputs outputs)
    : outputs_(std::move(outputs)),
      json_({{"benchmark", benchmark},
             {"version", SHARD_VERSION},
             {"command", command},
             {"machine", to_json(machine)},
             {"complete", false}}) {}

// Names of files may be no UTF-8: replaced rather than refused after all the work.
std::string Report::text() const {
  return json_.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void Report::save() const {
  if (!outputs_.json.empty() && !on_stdout()) publish_file(outputs_.json, text());
  if (!outputs_.csv.empty()) publish_file(outputs_.csv, to_csv(json_));
}

void Report::finish(const BarChart& chart) {
  json_["complete"] = true;
  if (on_stdout()) cli::write_out(text());
  save();
  if (!outputs_.plot.empty()) write_chart(outputs_.plot, chart);
}

}  // namespace shard::bench
