#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/load/loader_arguments.hpp"
#include "commands/upload/upload_bench.hpp"
#include "harness/common_options.hpp"
#include "harness/gpu_facts.hpp"
#include "harness/interrupt.hpp"
#include "harness/run_report.hpp"
#include "harness/stats.hpp"
#include "harness/step_estimate.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string device = "auto";
  Outputs outputs;
  unsigned threads = 2;
  double step_ms = 0;
  UploadOptions options;
};

// What the link is made for, in one direction; 0: not known.
double link_rate(const Device& device) {
  if (device.info().kind == DeviceKind::host) return 0;
  for (const GpuFacts& gpu : gpu_report().gpus)
    if (gpu.ordinal == device.info().ordinal) return gpu.links.most.bytes_per_second();
  return 0;
}

// Of a step: what is lost when a batch is uploaded before each step, and what of it an upload beside it
// fills.
struct Share {
  double alone = 0;
  double beside = 0;
};
Share share_of(double upload_seconds, double step_ms) {
  const double step = step_ms * 1e-3;
  return {upload_seconds / (upload_seconds + step), upload_seconds / step};
}

std::string rates_text(const UploadResult& result, double link) {
  using Align = cli::Table::Align;
  const double limit = summarize(result.limit_bytes_per_second).median;
  cli::Table table({Align::right, Align::left, Align::right, Align::right, Align::left});
  table.add_row({"chunk", "host memory", "GB/s", "of the limit", "lowest to highest"});
  std::string unsteady;
  for (const UploadCase& one : result.cases) {
    const std::string chunk = cli::human_bytes(one.chunk_bytes);
    if (!one.problem.empty()) {
      table.add_row({chunk, upload_name(one), "left out", "", one.problem});
      continue;
    }
    const Stats rate = summarize(one.bytes_per_second);
    table.add_row({chunk, upload_name(one), fmt::format("{:.2f}", rate.median / 1e9),
                   fmt::format("{:.3f}", rate.median / limit),
                   fmt::format("{:.2f} to {:.2f}", rate.min / 1e9, rate.max / 1e9)});
    if (spread_warning("", rate)) unsteady += (unsteady.empty() ? "" : "; ") + chunk + " " + upload_name(one);
  }
  std::string text =
      fmt::format("limit: {:.2f} GB/s (pinned memory to one device, the largest blocks){}\n\n", limit / 1e9,
                  link > 0 ? fmt::format("; the link is made for {:.2f}", link / 1e9) : "");
  text += table.to_string();
  if (!unsteady.empty())
    text += fmt::format(
        "warning: the samples of {} differ by more than {:.0f} % of their median: end other programs, "
        "or raise --repeat or --seconds\n",
        unsteady, 100 * kSpreadBound);
  return text;
}

std::string batches_text(const UploadResult& result, const Arguments& arguments) {
  if (result.batches.empty()) return {};
  using Align = cli::Table::Align;
  const double limit = summarize(result.limit_bytes_per_second).median;
  const double step = arguments.step_ms;
  cli::Table table({Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"batch", "upload ms", "of the limit", step > 0 ? "share of a step" : "",
                 step > 0 ? "when beside it" : ""});
  for (const BatchUpload& one : result.batches) {
    const double seconds = summarize(one.seconds).median;
    const double bytes = static_cast<double>(one.batch_size * arguments.options.sample_bytes);
    const Share share = step > 0 ? share_of(seconds, step) : Share{};
    table.add_row({std::to_string(one.batch_size), fmt::format("{:.3f}", seconds * 1e3),
                   fmt::format("{:.3f}", bytes / seconds / limit),
                   step > 0 ? fmt::format("{:.1f} %", 100 * share.alone) : "",
                   step > 0 ? fmt::format("{:.1f} %", 100 * share.beside) : ""});
  }
  std::string text =
      fmt::format("\nBatches of samples of {} bytes, one batched copy from {} memory, nothing else under way",
                  arguments.options.sample_bytes,
                  result.batches[0].memory == UploadMemory::registered ? "registered" : "pinned");
  text += step > 0 ? fmt::format("; a step of {} ms:\n", step) : ":\n";
  return text + table.to_string();
}

void add_json(Json& json, const UploadResult& result, const Arguments& arguments, const Device& device,
              std::size_t devices, double link) {
  json["device"] = device.info().name;
  json["devices"] = devices;
  json["sample_bytes"] = arguments.options.sample_bytes;
  json["memory_bytes"] = arguments.options.memory_bytes;
  json["repeat"] = arguments.options.repeat;
  json["step_ms"] = arguments.step_ms > 0 ? Json(arguments.step_ms) : Json();
  json["link_bytes_per_second"] = link > 0 ? Json(link) : Json();
  json["limit_bytes_per_second"] = result.limit_bytes_per_second;
  json["cases"] = Json::array();
  const double limit = summarize(result.limit_bytes_per_second).median;
  for (const UploadCase& one : result.cases) {
    Json entry{{"name", upload_name(one)},
               {"chunk_bytes", one.chunk_bytes},
               {"batched", one.batched},
               {"devices", one.devices},
               {"samples_bytes_per_second", one.bytes_per_second}};
    if (!one.problem.empty()) entry["problem"] = one.problem;
    if (!one.bytes_per_second.empty()) {
      entry["bytes_per_second"] = summarize(one.bytes_per_second).median;
      entry["share_of_limit"] = summarize(one.bytes_per_second).median / limit;
    }
    json["cases"].push_back(entry);
  }
  json["batches"] = Json::array();
  for (const BatchUpload& one : result.batches) {
    const double seconds = summarize(one.seconds).median;
    Json entry{{"batch_size", one.batch_size}, {"samples_seconds", one.seconds}, {"seconds", seconds}};
    if (arguments.step_ms > 0) {
      entry["share_of_step"] = share_of(seconds, arguments.step_ms).alone;
      entry["share_beside_step"] = share_of(seconds, arguments.step_ms).beside;
    }
    json["batches"].push_back(entry);
  }
}

BarChart chart_of(const UploadResult& result) {
  BarChart chart{"The link to the device", "GB/s", {}, {}};
  for (const UploadCase& one : result.cases) {
    if (!one.problem.empty() || one.bytes_per_second.empty()) continue;
    const std::string name = upload_name(one);
    add_bar(chart, fmt::format("{}, {}", cli::human_bytes(one.chunk_bytes), name),
            summarize(one.bytes_per_second).median / 1e9, name.substr(0, name.find(',')));
  }
  return chart;
}

int run(Arguments& arguments, const std::string& command) {
  const Machine facts = machine();
  const auto devices = devices_of(arguments.device, arguments.threads);
  const Device& device = *devices[0];
  const double link = link_rate(device);
  const InterruptGuard interrupt;
  Report report("upload", command, facts, arguments.outputs);
  StepProgress progress("repeat");
  std::size_t done = 0;
  const UploadResult result =
      bench_upload(devices, arguments.options, interrupt_flag(), [&](const UploadResult& now) {
        add_json(report.json(), now, arguments, device, devices.size(), link);
        report.save();
        progress.show(++done, arguments.options.repeat);
      });
  progress.finish();
  if (!report.on_stdout()) {
    cli::out("device: {}{}\n",
             device.info().kind == DeviceKind::host
                 ? fmt::format("host, {} threads: there is no link, every row is a copy in memory",
                               arguments.threads)
                 : device.info().name,
             devices.size() > 1 ? fmt::format(" x {}", devices.size()) : "");
    cli::write_out(rates_text(result, link) + batches_text(result, arguments));
  }
  add_json(report.json(), result, arguments, device, devices.size(), link);
  report.finish(chart_of(result));
  return std::any_of(result.cases.begin(), result.cases.end(),
                     [](const UploadCase& one) { return !one.problem.empty(); })
             ? 1
             : 0;
}

}  // namespace

void add_upload(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  UploadOptions& options = arguments->options;
  CLI::App* sub = app.add_subcommand("upload", R"(
      Measure the link to the GPU alone

      Times copies from pageable, pinned and registered memory, one by one and batched, for several copy sizes, in both
      directions and to several GPUs, and how long a batch takes. What arrives is compared before it is timed. On the
      host device the rows are copies in memory. Exit code 1: a row was left out, with the reason.

      Example: shardbench upload --device cuda:0,1 --step-ms 45 --json upload.json)");
  sub->add_option("--device", arguments->device,
                  "host, cuda, or cuda:N,M,... for rows with all of these GPUs")
      ->type_name("DEVICE")
      ->default_str("cuda, if there is one");
  sub->add_option("--chunks", options.chunks, "Sizes of a copy")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  sub->add_option("--batch-sizes", options.batch_sizes, "Samples per batch")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_option("--sample-bytes", options.sample_bytes, "Bytes of a stored sample")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  sub->add_option("--step-ms", arguments->step_ms, "Also print the share of a training step of X ms")
      ->check(CLI::Range(0.001, 1e6));
  sub->add_option("--memory", options.memory_bytes, "Bytes of each kind of memory, on host and device")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  sub->add_option("--threads", arguments->threads, "Threads of the host device")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  add_repeat_option(*sub, options.repeat);
  add_seconds_option(*sub, options.seconds);
  add_quick_option(*sub, options.repeat, options.seconds, 0.02);
  add_output_options(*sub, arguments->outputs);
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
