#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu_count.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/load/load_bench.hpp"
#include "commands/load/loader_arguments.hpp"
#include "data/load_data.hpp"
#include "harness/common_options.hpp"
#include "harness/run_report.hpp"
#include "harness/stats.hpp"
#include "harness/step_estimate.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string dataset, device = "auto", transport = "auto", order = "shuffle";
  std::string verify = "never";
  Outputs outputs;
  std::uint64_t make_random = 0;
  std::uint64_t make_sparse = 0;
  std::uint64_t make_shards = 1000;
  std::uint32_t make_side = 224;
  std::string make_dtype = "u8";
  TransformArguments transform;
  LoadCase load;
};

void apply(Arguments& arguments) {
  LoaderOptions& options = arguments.load.options;
  options.transport = transport_of(arguments.transport);
  options.transform = arguments.transform.options();
  if (arguments.order == "sequential") options.order.mode = OrderMode::sequential;
  if (arguments.order == "windowed") options.order.mode = OrderMode::windowed;
  if (arguments.verify == "always") options.verify = Verify::always;
  if (arguments.verify == "first_epoch") options.verify = Verify::first_epoch;
}

void make_data(const Arguments& arguments) {
  const auto dtype = dtype_from_option(arguments.make_dtype);
  if (!dtype) refuse_value("--make-dtype", arguments.make_dtype, "u8, f16, bf16 or f32");
  const Layout layout = *dtype == DType::u8 ? Layout::nhwc : Layout::nchw;
  const SampleSpec spec{*dtype, layout, 3, arguments.make_side, arguments.make_side};
  if (arguments.make_sparse > 0)
    make_sparse_dataset(arguments.dataset, arguments.make_sparse, arguments.make_shards, spec);
  else
    make_random_dataset(arguments.dataset, arguments.make_random, spec, cpu_count());
}

Stats rate_of(const LoadResult& result) {  // bytes/s
  std::vector<double> rates;
  for (const LoadSample& sample : result.samples) rates.push_back(sample.bytes_per_second);
  return summarize(rates);
}

void add_json(Json& json, const Arguments& arguments, const LoadResult& result, const Device& device,
              std::uint64_t sample_bytes, double open_seconds) {
  json["device"] = device.info().name;
  json["devices"] = result.stats.size();
  json["sample_bytes"] = sample_bytes;
  json["batch_size"] = arguments.load.options.order.batch_size;
  json["transport"] = to_string(result.stats[0].transport);
  json["reason"] = result.stats[0].reason;
  json["limit_bytes_per_second"] = result.limit_bytes_per_second;
  json["limit_is"] = result.limit_is;
  json["random_bytes_per_second"] = result.random_bytes_per_second;
  if (!result.random_is.empty()) json["random_is"] = result.random_is;
  if (!result.first_epochs.empty()) json["first_epochs_samples_per_second"] = result.first_epochs;
  json["open_seconds"] = open_seconds;
  json["first_batch_seconds"] = result.first_batch_seconds;
  if (!result.samples.empty()) {
    const double rate = rate_of(result).median;
    json["samples_per_second"] = rate / static_cast<double>(sample_bytes);
    json["bytes_per_second"] = rate;
    json["share_of_limit"] = rate / result.limit_bytes_per_second;
  }
  json["samples"] = Json::array();
  for (const LoadSample& sample : result.samples)
    json["samples"].push_back({{"samples_per_second", sample.samples_per_second},
                               {"bytes_per_second", sample.bytes_per_second},
                               {"cores", sample.cores}});
  json["registered_bytes"] = result.stats[0].registered_bytes;
  json["pinned_bytes"] = result.stats[0].pinned_bytes;
  json["device_bytes"] = result.stats[0].device_bytes;
}

BarChart chart_of(const LoadResult& result) {
  BarChart chart{"The loader beside its limit", "GB/s of stored samples", {}, {}};
  if (!result.samples.empty())
    add_bar(chart, fmt::format("loader, {}", to_string(result.stats[0].transport)),
            rate_of(result).median / 1e9, "loader");
  if (result.limit_bytes_per_second > 0)
    add_bar(chart, "limit", result.limit_bytes_per_second / 1e9, result.limit_is);
  if (result.random_bytes_per_second > 0)
    add_bar(chart, "disk, as the loader reads", result.random_bytes_per_second / 1e9, result.random_is);
  return chart;
}

void print(const LoadResult& result, const Device& device, std::uint64_t size, double open_seconds) {
  const LoaderStats& stats = result.stats[0];
  cli::out("device: {}{}, transport {} ({})\n", device.info().name,
           result.stats.size() > 1 ? fmt::format(" x {}", result.stats.size()) : "",
           to_string(stats.transport), stats.reason);
  if (!result.samples.empty()) {
    const Stats rate = rate_of(result);
    cli::out("rate: {:.0f} samples/s, {:.2f} GB/s of stored samples ({:.2f} to {:.2f}), {:.2f} cores\n",
             rate.median / static_cast<double>(size), rate.median / 1e9, rate.min / 1e9, rate.max / 1e9,
             result.samples.back().cores);
    cli::out("limit: {:.2f} GB/s ({}); share {:.3f}\n", result.limit_bytes_per_second / 1e9, result.limit_is,
             rate.median / result.limit_bytes_per_second);
    if (result.random_bytes_per_second > 0)
      cli::out("the disk read as the loader reads it: {:.2f} GB/s ({}); share {:.3f}\n",
               result.random_bytes_per_second / 1e9, result.random_is,
               rate.median / result.random_bytes_per_second);
    for (std::size_t i = 0; i < result.first_epochs.size(); ++i)
      cli::out("epoch {}: {:.0f} samples/s, {:.3f} of the rate\n", i, result.first_epochs[i],
               result.first_epochs[i] * static_cast<double>(size) / rate.median);
    if (const auto warning = spread_warning("load", rate)) cli::out("warning: {}\n", *warning);
  }
  cli::out("opened in {:.3f} s, first batch {:.3f} s later; registered {}, pinned {}, device {}\n",
           open_seconds, result.first_batch_seconds, cli::human_bytes(stats.registered_bytes),
           cli::human_bytes(stats.pinned_bytes), cli::human_bytes(stats.device_bytes));
}

int run(Arguments& arguments, const std::string& command) {
  apply(arguments);
  if (arguments.make_random > 0 || arguments.make_sparse > 0) make_data(arguments);
  const Machine facts = machine();
  const unsigned threads = arguments.load.options.threads;
  const auto devices = devices_of(arguments.device, threads != 0 ? threads : 2);
  const auto& device = devices[0];
  const auto begin = std::chrono::steady_clock::now();
  const auto dataset = std::make_shared<const Dataset>(Dataset::open(arguments.dataset));
  const double open_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::uint64_t size = dataset->info().spec.size_bytes();
  Report report("load", command, facts, arguments.outputs);
  StepProgress progress("repeat");
  const auto save = [&](const LoadResult& now) {
    add_json(report.json(), arguments, now, *device, size, open_seconds);
    report.save();
    progress.show(now.samples.size(), arguments.load.repeats);
  };
  const LoadResult result = bench_load(dataset, devices, arguments.load, save);
  progress.finish();
  if (!report.on_stdout()) print(result, *device, size, open_seconds);
  add_json(report.json(), arguments, result, *device, size, open_seconds);
  report.finish(chart_of(result));
  return 0;
}

}  // namespace

void add_load(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  LoaderOptions& options = arguments->load.options;
  CLI::App* sub = app.add_subcommand("load", R"(
      Compare the loader with the link to the GPU, the disk, or a bare copy loop

      Times the loader on a data set, and its limit in the same process: on a GPU the link (large blocks of pinned
      memory), on the host a bare copy of the same samples by the same threads, for transport direct the disk.

      Example: shardbench load out/train --device cuda --dtype f16 --layout nchw)");
  sub->add_option("DATASET", arguments->dataset, "A folder made by shardify")->required();
  sub->add_option("--device", arguments->device,
                  R"(
host, cuda, or cuda:N,M,... for one rank on each of these GPUs)")
      ->type_name("DEVICE")
      ->default_str("cuda, if there is one");
  sub->add_option("--transport", arguments->transport, "auto, mapped, staged, direct or resident")
      ->type_name("NAME")
      ->capture_default_str();
  sub->add_option("--batch-size", options.order.batch_size, "Samples per batch")->capture_default_str();
  sub->add_option("--prefetch", options.prefetch, "Batches ahead")->capture_default_str();
  sub->add_option("--threads", options.threads, "Copy threads; on the host, threads of the device")
      ->default_str("8, host: 2");
  sub->add_option("--readahead", options.readahead_bytes, "Reads in progress, for direct")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  sub->add_option("--order", arguments->order, "Order of the samples: shuffle, sequential or windowed")
      ->type_name("NAME")
      ->check(CLI::IsMember({"shuffle", "sequential", "windowed"}))
      ->capture_default_str();
  sub->add_option("--window", options.order.window_shards, "Shards per window, for windowed")
      ->capture_default_str();
  arguments->transform.add_to(*sub);
  sub->add_option("--registered", options.registered_bytes, "Budget for registered shards, for mapped")
      ->default_str("half of the available memory")
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--verify", arguments->verify, R"(
Compare checksums while loading: never, first_epoch or always)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"never", "first_epoch", "always"}))
      ->capture_default_str();
  add_seconds_option(*sub, arguments->load.seconds,
                     "Length of a repeat, at least one epoch; 0: only open, and the first batch");
  add_repeat_option(*sub, arguments->load.repeats, "Number of repeats");
  sub->add_option("--first-epochs", arguments->load.first_epochs,
                  "Time the first N epochs one by one, before the warm-up")
      ->capture_default_str();
  sub->add_option("--make-random", arguments->make_random,
                  R"(
First write N pseudo-random samples to DATASET, if it does not exist)");
  sub->add_option("--make-sparse", arguments->make_sparse,
                  "The same with zeros in sparse files, to time opening");
  sub->add_option("--make-shards", arguments->make_shards, "Shards of --make-sparse")->capture_default_str();
  sub->add_option("--make-side", arguments->make_side, "Rows and columns of the samples made")
      ->capture_default_str();
  sub->add_option("--make-dtype", arguments->make_dtype, "Their dtype: u8 (NHWC), or f16, bf16 or f32 (NCHW)")
      ->type_name("DTYPE")
      ->capture_default_str();
  add_quick_option(*sub, arguments->load.repeats, arguments->load.seconds, 0.5);
  add_output_options(*sub, arguments->outputs, "Write the report with every sample as JSON");
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
