#include "harness/report.hpp"

#include <utility>

#include "cli/output.hpp"
#include "harness/csv.hpp"
#include "harness/machine.hpp"
#include "report/chart_file.hpp"
#include "shard/dataset.hpp"
#include "shard/version.hpp"

namespace shard::bench {

Report::Report(const std::string& benchmark, const std::string& command, Outputs outputs, std::string step)
    : outputs_(std::move(outputs)),
      json_({{"benchmark", benchmark},
             {"version", SHARD_VERSION_STRING},
             {"command", command},
             {"machine", machine()},
             {"complete", false}}),
      progress_(std::move(step)) {}

// Names of files may be no UTF-8: replaced rather than refused after all the work.
std::string Report::text() const { return json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

void Report::save() const {
  if (!outputs_.json.empty() && outputs_.json != "-") publish_file(outputs_.json, text());
  if (!outputs_.csv.empty()) publish_file(outputs_.csv, to_csv(json_));
}

void Report::save(std::size_t done, std::size_t count, std::string_view stage) {
  save();
  progress_.show(done, count, stage);
}

void Report::finish(PageSection (*section)(const Json&), const std::string& before,
                    const std::string& after) {
  progress_.finish();
  json_["complete"] = true;
  const PageSection made = section(json_);
  cli::write_out(outputs_.json == "-" ? text() : before + to_text(made) + after);
  save();
  if (!outputs_.plot.empty())
    write_chart(outputs_.plot, made.charts.empty() ? PageChart{} : made.charts.front());
}

}  // namespace shard::bench
