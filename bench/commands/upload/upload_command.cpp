#include <memory>
#include <string>

#include "commands.hpp"
#include "commands/upload/upload_bench.hpp"
#include "feeds/loader_arguments.hpp"
#include "harness/gpu_facts.hpp"
#include "harness/interrupt.hpp"
#include "harness/stats.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct UploadArguments {
  std::string device = "auto";
  Outputs outputs;
  unsigned threads = 2;
  double step_ms = 0;
  UploadOptions options;
};

// What the link is made for, in one direction; null: not known.
Json link_rate(const Device& device) {
  if (device.info().kind == DeviceKind::host) return {};
  for (const Json& gpu : gpu_report()["devices"])
    if (const Json& rate = gpu["link_at_most"]["bytes_per_second"];
        gpu["ordinal"] == device.info().ordinal && rate > 0)
      return rate;
  return {};
}

void add_results(Json& json, const UploadResult& result, const UploadArguments& arguments) {
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
      const double step = arguments.step_ms * 1e-3;
      entry["share_of_step"] = seconds / (seconds + step);  // lost where a batch is uploaded before each step
      entry["share_beside_step"] = seconds / step;          // filled by an upload beside it
    }
    json["batches"].push_back(entry);
  }
}

int run_upload(UploadArguments& arguments, const std::string& command) {
  Report report("upload", command, arguments.outputs);
  const UploadOptions& options = arguments.options;
  const auto devices = devices_of(arguments.device, arguments.threads);
  const Device& device = *devices[0];
  const InterruptGuard interrupt;
  Json& json = report.json();
  json["device"] = device.info().name;
  json["devices"] = devices.size();
  json["sample_bytes"] = options.sample_bytes;
  json["memory_bytes"] = options.memory_bytes;
  json["repeat"] = options.repeat;
  json["step_ms"] = arguments.step_ms > 0 ? Json(arguments.step_ms) : Json();
  json["link_bytes_per_second"] = link_rate(device);
  std::size_t done = 0;
  const UploadResult result = bench_upload(devices, options, interrupt_flag(), [&](const UploadResult& now) {
    add_results(json, now, arguments);
    report.save(++done, options.repeat);
  });
  report.finish(upload_section);
  return any_problem(result.cases) ? 1 : 0;
}

}  // namespace

void add_upload(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<UploadArguments>();
  UploadOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("upload", R"(
      Measure the link to the GPU alone

      Times copies from pageable, pinned and registered memory, one by one and batched, for several copy sizes, in both
      directions and to several GPUs, and how long a batch takes. What arrives is compared before it is timed. On the
      host device the rows are copies in memory. Exit code 1: a row was left out, with the reason.

      Example: shardbench upload --device cuda:0,1 --step-ms 45 --json upload.json)",
                                  arguments, run_upload);
  add_device_option(sub, arguments->device, "host, cuda, or cuda:N,M,... for rows with all of these GPUs");
  add_size_option(sub, "--chunks", options.chunks, "Sizes of a copy")->delimiter(',');
  sub.add_option("--batch-sizes", options.batch_sizes, "Samples per batch")->delimiter(',');
  add_size_option(sub, "--sample-bytes", options.sample_bytes, "Bytes of a stored sample");
  sub.add_option("--step-ms", arguments->step_ms, "Also print the share of a training step of X ms")
      ->check(CLI::Range(0.001, 1e6))
      ->default_str("");
  add_size_option(sub, "--memory", options.memory_bytes, "Bytes of each kind of memory, on host and device");
  add_threads_option(sub, arguments->threads, "Threads of the host device");
  add_repeat_option(sub, options.repeat);
  add_seconds_option(sub, options.seconds);
  add_quick_option(sub, options.repeat, options.seconds, 0.02);
  add_output_options(sub, arguments->outputs);
}

}  // namespace shard::bench
