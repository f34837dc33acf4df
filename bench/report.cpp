#include "report.hpp"

#include <utility>

#include "common/output.hpp"
#include "shard/dataset.hpp"

namespace shard::bench {

Report::Report(const std::string& benchmark, const std::string& command, const Machine& machine,
               std::string file)
    : file_(std::move(file)),
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
  if (!file_.empty() && !on_stdout()) publish_file(file_, text());
}

void Report::finish() {
  json_["complete"] = true;
  if (on_stdout())
    cli::write_out(text());
  else
    save();
}

}  // namespace shard::bench
