#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/system/system_memory.hpp"
#include "commands.hpp"
#include "commands/memory/memory_bench.hpp"
#include "feeds/loader_arguments.hpp"
#include "harness/interrupt.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct MemoryArguments {
  std::string dataset, device = "auto", transport = "auto";
  Outputs outputs;
  TransformArguments transform;
  unsigned threads = 2;
  MemoryBenchOptions options;
};

std::uint64_t grown(std::uint64_t before, std::uint64_t after) { return after > before ? after - before : 0; }

// Each kind of memory of one case.
Json memory_json(const MemoryCase& one, const Device& device, const LoaderOptions& options) {
  const bool host = device.info().kind == DeviceKind::host;
  const std::uint64_t available = available_memory_bytes();
  const std::uint64_t on_device = host ? available : device.info().memory_bytes;
  const char* const device_limit = host ? "available memory" : "the GPU's memory";
  const bool ring =
      one.predicted.transport == TransportKind::staged || one.predicted.transport == TransportKind::direct;
  const LoaderMemory& predicted = one.predicted;
  const LoaderMemory& measured = one.measured;
  Json json;
  const auto row = [&](const char* kind, std::uint64_t expected, std::uint64_t found, std::uint64_t limit,
                       const char* limit_is) {
    json[kind] = {{"predicted_bytes", expected},
                  {"measured_bytes", found},
                  {"difference", difference(expected, found)},
                  {"limit_bytes", limit},
                  {"limit_is", limit_is}};
  };
  row("device", predicted.device_bytes, measured.device_bytes, on_device, device_limit);
  row("pinned", predicted.pinned_bytes, measured.pinned_bytes, ring ? options.memory.pinned_bytes : available,
      ring ? "pinned_bytes" : "available memory");
  if (predicted.registered_bytes > 0 || measured.registered_bytes > 0)
    row("registered", predicted.registered_bytes, measured.registered_bytes,
        options.memory.registered_bytes != 0 ? options.memory.registered_bytes : available / 2,
        "registered_bytes");
  if (host)
    row("process", predicted.device_bytes + predicted.pinned_bytes,
        grown(one.process_before, one.process_after), available, device_limit);
  else
    row("GPU's own account", predicted.device_bytes, grown(one.free_after, one.free_before), on_device,
        device_limit);
  return json;
}

Json case_json(const MemoryCase& one, const Device& device, const LoaderOptions& options) {
  if (!one.problem.empty()) return {{"batch_size", one.batch_size}, {"problem", one.problem}};
  return {{"batch_size", one.batch_size},
          {"transport", to_string(one.transport)},
          {"predicted_link", to_string(one.predicted.transport)},
          {"reason", one.reason},
          {"batches", one.batches},
          {"memory", memory_json(one, device, options)}};
}

// The smallest, one between and the largest.
void lower_to_three(std::vector<std::uint64_t>& sizes) {
  if (sizes.size() <= 3) return;
  std::sort(sizes.begin(), sizes.end());
  sizes = {sizes.front(), sizes[sizes.size() / 2], sizes.back()};
}

int run_memory(MemoryArguments& arguments, const std::string& command) {
  LoaderOptions& options = arguments.options.loader;
  options.transport = transport_of(arguments.transport);
  options.transform = arguments.transform.options();
  Report report("memory", command, arguments.outputs, "batch size");
  const auto dataset = Dataset::open(arguments.dataset);
  const auto devices = devices_of(arguments.device, arguments.threads);
  if (devices.size() != 1) refuse_value("--device", arguments.device, "one device");
  const Device& device = *devices[0];
  const InterruptGuard interrupt;
  Json& json = report.json();
  json["dataset"] = arguments.dataset;
  json["samples"] = dataset.size();
  json["sample_bytes"] = dataset.info().spec.size_bytes();
  json["delivered_bytes"] = plan_transform(dataset.info(), options.transform).delivered.size_bytes();
  json["codec"] = to_string(dataset.info().codec);
  json["device"] = device.info().name;
  json["device_memory_bytes"] = device.info().memory_bytes;
  json["prefetch"] = options.prefetch;
  const auto cases =
      bench_memory(dataset, devices[0], arguments.options, interrupt_flag(), [&](const auto& now) {
        json["cases"] = Json::array();
        for (const MemoryCase& one : now) json["cases"].push_back(case_json(one, device, options));
        report.save(now.size(), arguments.options.batch_sizes.size());
      });
  report.finish(memory_section);
  return any_problem(cases) ? 1 : 0;
}

}  // namespace

void add_memory(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<MemoryArguments>();
  LoaderOptions& loader = arguments->options.loader;
  loader.prefetch = 4;
  CLI::App& sub = subcommands.add("memory", R"(
      Print device and pinned memory of the loader per batch size, predicted and measured

      The memory is computed in advance (plan_memory(), the formula in docs/loader.md), counted by the loader, and measured on
      the GPU or in the process. Exit code 1: a batch size was left out, with the reason.

      Example: shardbench memory out/train --batch-sizes 64,256 --transport staged --dtype f16)",
                                  arguments, run_memory);
  sub.add_option("DATASET", arguments->dataset, "A folder made by shardify")->required();
  sub.add_option("--batch-sizes", arguments->options.batch_sizes, "Samples per batch, 1 to 65536")
      ->delimiter(',');
  add_device_option(sub, arguments->device, "host, cuda or cuda:N");
  sub.add_option("--transport", arguments->transport, "auto, mapped, staged, direct or resident")
      ->type_name("auto|mapped|staged|direct|resident");
  sub.add_option("--prefetch", loader.prefetch, "Batches ahead");
  add_threads_option(sub, arguments->threads, "Threads of the host device");
  add_size_option(sub, "--pinned-bytes", loader.memory.pinned_bytes, "Bound of pinned memory")
      ->default_str("1 GiB");
  add_size_option(sub, "--registered-bytes", loader.memory.registered_bytes, "Bound of registered shards")
      ->default_str("half of the available memory");
  add_size_option(sub, "--resident-bytes", loader.memory.resident_bytes,
                  "Device memory for samples, for resident")
      ->default_str("what fits");
  arguments->transform.add_to(sub);
  add_quick_option(sub, "Take at most 3 of the batch sizes",
                   [arguments] { lower_to_three(arguments->options.batch_sizes); });
  add_output_options(sub, arguments->outputs, "Write the report as JSON");
}

}  // namespace shard::bench
