#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/system_memory.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/load/loader_arguments.hpp"
#include "commands/memory/memory_bench.hpp"
#include "harness/common_options.hpp"
#include "harness/interrupt.hpp"
#include "harness/run_report.hpp"
#include "harness/step_estimate.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;
using Cases = std::vector<MemoryCase>;
constexpr double kNoted = 0.01;

struct Arguments {
  std::string dataset, device = "auto", transport = "auto";
  Outputs outputs;
  TransformArguments transform;
  unsigned threads = 2;
  MemoryOptions options;
};

// One kind of memory of one case.
struct Row {
  std::string kind;
  std::uint64_t predicted = 0;
  std::uint64_t measured = 0;
  std::uint64_t limit = 0;
  std::string limit_is;
  std::string why;  // it may differ
};

std::uint64_t grown(std::uint64_t before, std::uint64_t after) { return after > before ? after - before : 0; }

std::vector<Row> rows_of(const MemoryCase& one, const Device& device, const LoaderOptions& options) {
  const bool host = device.info().kind == DeviceKind::host;
  const std::uint64_t available = shard::available_memory_bytes();
  const std::uint64_t on_device = host ? available : device.info().memory_bytes;
  const bool ring =
      one.predicted.transport == TransportKind::staged || one.predicted.transport == TransportKind::direct;
  const LoaderMemory& p = one.predicted;
  std::vector<Row> rows{
      {"device", p.device_bytes, one.measured.device_bytes, on_device,
       host ? "available memory" : "the GPU's memory", ""},
      {"pinned", p.pinned_bytes, one.measured.pinned_bytes, ring ? options.pinned_bytes : available,
       ring ? "pinned_bytes" : "available memory", ""}};
  if (p.registered_bytes > 0 || one.measured.registered_bytes > 0)
    rows.push_back({"registered", p.registered_bytes, one.measured.registered_bytes,
                    options.registered_bytes != 0 ? options.registered_bytes : available / 2,
                    "registered_bytes", ""});
  if (host)
    rows.push_back({"process", p.device_bytes + p.pinned_bytes, grown(one.process_before, one.process_after),
                    available, "available memory",
                    "stacks of threads and bookkeeping come on top, pages not written to do not count"});
  else
    rows.push_back({"GPU's own account", p.device_bytes, grown(one.free_after, one.free_before), on_device,
                    "the GPU's memory",
                    "the driver gives out blocks of 2 MiB, parameters of transforms come on top, "
                    "and other programs count too"});
  return rows;
}

std::string table_text(const Cases& cases, const Device& device, const LoaderOptions& options) {
  using Align = cli::Table::Align;
  cli::Table table({Align::right, Align::left, Align::right, Align::right, Align::right, Align::right,
                    Align::right, Align::left});
  table.add_row({"batch", "memory", "predicted", "measured", "differs", "limit", "share", ""});
  std::string notes, last;
  for (const MemoryCase& one : cases) {
    const std::string batch = std::to_string(one.batch_size);
    if (!one.problem.empty()) {
      table.add_row({batch, "left out"});
      notes += fmt::format("batch {} was left out: {}\n", batch, one.problem);
      continue;
    }
    if (one.reason != last) notes += fmt::format("transport {} ({})\n", to_string(one.transport), one.reason);
    last = one.reason;
    bool first = true;
    for (const Row& row : rows_of(one, device, options)) {
      const double apart = difference(row.predicted, row.measured);
      table.add_row({first ? batch : "", row.kind, cli::human_bytes(row.predicted),
                     cli::human_bytes(row.measured), fmt::format("{:.1f} %", 100 * apart),
                     cli::human_bytes(row.limit),
                     fmt::format("{:.4f}", static_cast<double>(row.measured) /
                                               static_cast<double>(std::max<std::uint64_t>(row.limit, 1))),
                     row.limit_is});
      first = false;
      if (apart > kNoted)
        notes += fmt::format("batch {}, {}: {} bytes predicted, {} measured{}{}\n", batch, row.kind,
                             row.predicted, row.measured, row.why.empty() ? "" : ": ", row.why);
    }
  }
  return table.to_string() + (notes.find("predicted,") == std::string::npos
                                  ? notes + "No prediction is more than 1 % from what was measured.\n"
                                  : notes);
}

void add_json(Json& json, const Cases& cases, const Device& device, const Arguments& arguments,
              const Dataset& dataset) {
  const LoaderOptions& options = arguments.options.loader;
  json["dataset"] = arguments.dataset;
  json["samples"] = dataset.size();
  json["sample_bytes"] = dataset.info().spec.size_bytes();
  json["delivered_bytes"] = plan_transform(dataset.info(), options.transform).delivered.size_bytes();
  json["codec"] = to_string(dataset.info().codec);
  json["device"] = device.info().name;
  json["device_memory_bytes"] = device.info().memory_bytes;
  json["prefetch"] = options.prefetch;
  json["cases"] = Json::array();
  for (const MemoryCase& one : cases) {
    Json entry{{"batch_size", one.batch_size}};
    if (!one.problem.empty()) {
      entry["problem"] = one.problem;
      json["cases"].push_back(entry);
      continue;
    }
    entry["transport"] = to_string(one.transport);
    entry["predicted_link"] = to_string(one.predicted.transport);
    entry["reason"] = one.reason;
    entry["batches"] = one.batches;
    for (const Row& row : rows_of(one, device, options))
      entry["memory"][row.kind] = {{"predicted_bytes", row.predicted},
                                   {"measured_bytes", row.measured},
                                   {"difference", difference(row.predicted, row.measured)},
                                   {"limit_bytes", row.limit},
                                   {"limit_is", row.limit_is}};
    json["cases"].push_back(entry);
  }
}

BarChart chart_of(const Cases& cases, const Device& device, const LoaderOptions& options) {
  BarChart chart{"Memory of the loader", "MB", {}, {}};
  for (const MemoryCase& one : cases) {
    if (!one.problem.empty()) continue;
    for (const Row& row : rows_of(one, device, options)) {
      const std::string label = fmt::format("batches of {}: {}", one.batch_size, row.kind);
      add_bar(chart, label, static_cast<double>(row.predicted) / 1e6, "predicted");
      add_bar(chart, label, static_cast<double>(row.measured) / 1e6, "measured");
    }
  }
  return chart;
}

// The smallest, one between and the largest.
void lower_to_three(std::vector<std::uint64_t>& sizes) {
  if (sizes.size() <= 3) return;
  std::sort(sizes.begin(), sizes.end());
  sizes = {sizes.front(), sizes[sizes.size() / 2], sizes.back()};
}

int run(Arguments& arguments, const std::string& command) {
  LoaderOptions& options = arguments.options.loader;
  options.transport = transport_of(arguments.transport);
  options.transform = arguments.transform.options();
  const Machine facts = machine();
  const auto dataset = std::make_shared<const Dataset>(Dataset::open(arguments.dataset));
  const auto devices = devices_of(arguments.device, arguments.threads);
  if (devices.size() != 1) refuse_value("--device", arguments.device, "one device");
  const Device& device = *devices[0];
  const InterruptGuard interrupt;
  Report report("memory", command, facts, arguments.outputs);
  StepProgress progress("batch size");
  const Cases cases =
      bench_memory(dataset, devices[0], arguments.options, interrupt_flag(), [&](const Cases& now) {
        add_json(report.json(), now, device, arguments, *dataset);
        report.save();
        progress.show(now.size(), arguments.options.batch_sizes.size());
      });
  progress.finish();
  if (!report.on_stdout()) {
    cli::out("{}: {}, codec {}, {} a sample; {}, {} batches ahead\n", arguments.dataset,
             cli::counted(dataset->size(), "sample"), to_string(dataset->info().codec),
             cli::human_bytes(dataset->info().spec.size_bytes()), device.info().name, options.prefetch);
    cli::write_out(table_text(cases, device, options));
  }
  add_json(report.json(), cases, device, arguments, *dataset);
  report.finish(chart_of(cases, device, options));
  return std::any_of(cases.begin(), cases.end(), [](const MemoryCase& one) { return !one.problem.empty(); })
             ? 1
             : 0;
}

}  // namespace

void add_memory(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  LoaderOptions& loader = arguments->options.loader;
  CLI::App* sub = app.add_subcommand("memory", R"(
      Print device and pinned memory of the loader per batch size, predicted and measured

      The memory is computed in advance (plan_memory(), the formula in docs/loader.md), counted by the loader, and measured on
      the GPU or in the process. Exit code 1: a batch size was left out, with the reason.

      Example: shardbench memory out/train --batch-sizes 64,256 --transport staged --dtype f16)");
  sub->add_option("DATASET", arguments->dataset, "A folder made by shardify")->required();
  sub->add_option("--batch-sizes", arguments->options.batch_sizes, "Samples per batch, 1 to 65536")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_option("--device", arguments->device, "host, cuda or cuda:N")
      ->type_name("DEVICE")
      ->default_str("cuda, if there is one");
  sub->add_option("--transport", arguments->transport, "auto, mapped, staged, direct or resident")
      ->type_name("NAME")
      ->capture_default_str();
  sub->add_option("--prefetch", loader.prefetch, "Batches ahead")->capture_default_str();
  sub->add_option("--threads", arguments->threads, "Threads of the host device")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  const auto size = [&](const char* name, std::uint64_t& value, const char* text, const char* standard) {
    sub->add_option(name, value, text)->transform(CLI::AsSizeValue(false))->default_str(standard);
  };
  size("--pinned-bytes", loader.pinned_bytes, "Bound of pinned memory", "1 GiB");
  size("--registered-bytes", loader.registered_bytes, "Bound of registered shards",
       "half of the available memory");
  size("--resident-bytes", loader.resident_bytes, "Device memory for samples, for resident", "what fits");
  arguments->transform.add_to(*sub);
  add_quick_option(*sub, "Take at most 3 of the batch sizes",
                   [arguments] { lower_to_three(arguments->options.batch_sizes); });
  add_output_options(*sub, arguments->outputs, "Write the report as JSON");
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
