#include <memory>
#include <string>

#include "commands.hpp"
#include "commands/transform/transform_bench.hpp"
#include "feeds/loader_arguments.hpp"
#include "harness/interrupt.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct TransformBenchArguments {
  std::string device = "auto";
  std::string dtype = "f16";
  Outputs outputs;
  unsigned threads = 2;
  TransformBenchOptions options;
};

Json case_json(const TransformCase& one) {
  if (!one.problem.empty()) return {{"name", one.name}, {"problem", one.problem}};
  return {{"name", one.name},
          {"samples_per_second", one.samples_per_second},
          {"draws_per_second", one.draws_per_second}};
}

int run_transform(TransformBenchArguments& arguments, const std::string& command) {
  TransformBenchOptions& options = arguments.options;
  options.dtype = *dtype_from_string(arguments.dtype);  // the parser has checked it
  Report report("transform", command, arguments.outputs);
  const auto devices = devices_of(arguments.device, arguments.threads);
  if (devices.size() != 1) refuse_value("--device", arguments.device, "one device");
  Device& device = *devices[0];
  const InterruptGuard interrupt;
  Json& json = report.json();
  json["device"] = device.info().name;
  if (device.info().kind == DeviceKind::host) json["threads"] = arguments.threads;
  json["side"] = options.side;
  json["size"] = options.size;
  json["dtype"] = arguments.dtype;
  json["batch_size"] = options.batch_size;
  const TransformResult result = bench_transform(device, options, interrupt_flag(), [&](const auto& now) {
    json["stored_bytes"] = now.stored_bytes;
    json["delivered_bytes"] = now.delivered_bytes;
    json["memory_bytes_per_second"] = now.memory_bytes_per_second;
    json["cases"] = Json::array();
    for (const TransformCase& one : now.cases) json["cases"].push_back(case_json(one));
    report.save(now.memory_bytes_per_second.size(), options.repeat);
  });
  report.finish(transform_section);
  return any_problem(result.cases) ? 1 : 0;
}

}  // namespace

void add_transform(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<TransformBenchArguments>();
  TransformBenchOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("transform", R"(
      Time operations of augmentation on samples in the device's memory

      Each operation alone, policies and chains, after a random-resized-crop and a flip, on generated pictures; without a link and
      without a disk. The limit is the device's memory: bytes that copies of samples read and write in a second, over the bytes
      of a stored and a delivered sample. Exit code 1: a case was left out, with the reason.

      Example: shardbench transform --device cuda --cases rand_augment,color_jitter)",
                                  arguments, run_transform);
  add_device_option(sub, arguments->device, "host, cuda or cuda:N");
  add_threads_option(sub, arguments->threads, "Threads of the host device");
  sub.add_option("--side", options.side, "Rows and columns of a stored sample, 32 to 4096");
  sub.add_option("--size", options.size, "Rows and columns of a delivered one");
  sub.add_option("--dtype", arguments->dtype, "Delivered: f16, bf16 or f32")
      ->check(CLI::IsMember({"f16", "bf16", "f32"}));
  sub.add_option("--batch-size", options.batch_size, "Samples of a batch, 1 to 4096");
  sub.add_option("--cases", options.cases, "Only the cases whose names begin so")->delimiter(',');
  add_repeat_option(sub, options.repeat);
  add_seconds_option(sub, options.seconds);
  add_quick_option(sub, options.repeat, options.seconds, 0.1);
  add_output_options(sub, arguments->outputs);
}

}  // namespace shard::bench
