#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "commands.hpp"
#include "common/format.hpp"
#include "common/output.hpp"
#include "common_options.hpp"
#include "load_bench.hpp"
#include "load_data.hpp"
#include "loader_arguments.hpp"
#include "machine.hpp"
#include "shard/error.hpp"
#include "stats.hpp"

namespace shard::bench {
namespace {

struct Arguments {
  std::string dataset, device = "auto", transport = "auto", order = "shuffle";
  std::string verify = "never", json;
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
  const auto dtype = dtype_from_string(arguments.make_dtype);
  if (!dtype) refuse_value("--make-dtype", arguments.make_dtype, "u8, f16, bf16 or f32");
  const Layout layout = *dtype == DType::u8 ? Layout::nhwc : Layout::nchw;
  const SampleSpec spec{*dtype, layout, 3, arguments.make_side, arguments.make_side};
  if (arguments.make_sparse > 0)
    make_sparse_dataset(arguments.dataset, arguments.make_sparse, arguments.make_shards, spec);
  else
    make_random_dataset(arguments.dataset, arguments.make_random, spec,
                        std::max(1U, std::thread::hardware_concurrency()));
}

nlohmann::ordered_json to_report(const Arguments& arguments, const LoadResult& result, const Device& device,
                                 const Machine& facts, const std::string& command, std::uint64_t sample_bytes,
                                 double open_seconds) {
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  for (const LoadSample& sample : result.samples)
    samples.push_back({{"samples_per_second", sample.samples_per_second},
                       {"bytes_per_second", sample.bytes_per_second},
                       {"cores", sample.cores}});
  return {{"command", command},
          {"machine", to_json(facts)},
          {"device", device.info().name},
          {"devices", result.stats.size()},
          {"sample_bytes", sample_bytes},
          {"batch_size", arguments.load.options.order.batch_size},
          {"transport", to_string(result.stats[0].transport)},
          {"reason", result.stats[0].reason},
          {"limit_bytes_per_second", result.limit_bytes_per_second},
          {"limit_is", result.limit_is},
          {"random_bytes_per_second", result.random_bytes_per_second},
          {"open_seconds", open_seconds},
          {"first_batch_seconds", result.first_batch_seconds},
          {"samples", samples},
          {"registered_bytes", result.stats[0].registered_bytes},
          {"pinned_bytes", result.stats[0].pinned_bytes},
          {"device_bytes", result.stats[0].device_bytes}};
}

void print(const LoadResult& result, const Device& device, std::uint64_t size, double open_seconds) {
  const LoaderStats& stats = result.stats[0];
  cli::out("device: {}{}, transport {} ({})\n", device.info().name,
           result.stats.size() > 1 ? fmt::format(" x {}", result.stats.size()) : "",
           to_string(stats.transport), stats.reason);
  if (!result.samples.empty()) {
    std::vector<double> rates;
    for (const LoadSample& sample : result.samples) rates.push_back(sample.bytes_per_second);
    const Stats rate = summarize(rates);
    cli::out("rate: {:.0f} samples/s, {:.2f} GB/s of stored samples ({:.2f} to {:.2f}), {:.2f} cores\n",
             rate.median / static_cast<double>(size), rate.median / 1e9, rate.min / 1e9, rate.max / 1e9,
             result.samples.back().cores);
    cli::out("limit: {:.2f} GB/s ({}); share {:.3f}\n", result.limit_bytes_per_second / 1e9, result.limit_is,
             rate.median / result.limit_bytes_per_second);
    if (result.random_bytes_per_second > 0)
      cli::out(
          "limit of any shuffled order: {:.2f} GB/s (the disk at random places, reads of a sample); share "
          "{:.3f}\n",
          result.random_bytes_per_second / 1e9, rate.median / result.random_bytes_per_second);
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
  const LoadResult result = bench_load(dataset, devices, arguments.load);
  const std::uint64_t size = dataset->info().spec.size_bytes();
  if (arguments.json != "-") print(result, *device, size, open_seconds);
  if (arguments.json.empty()) return 0;
  const std::string text = to_report(arguments, result, *device, facts, command, size, open_seconds)
                               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                           "\n";
  if (arguments.json == "-") {
    cli::write_out(text);
  } else {
    publish_file(arguments.json, text);
  }
  return 0;
}

}  // namespace

void add_load(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  LoaderOptions& options = arguments->load.options;
  CLI::App* sub = app.add_subcommand(
      "load",
      "Time the loader on a data set against what carries its bytes, in the same process: on a GPU the link\n"
      "(pinned memory, large blocks), on the host a bare gather of the same samples by the same threads.");
  sub->add_option("DATASET", arguments->dataset, "Folder made by shardify")->required();
  sub->add_option("--device", arguments->device,
                  "host, cuda, or cuda:N,M,...: a rank on each (default: cuda where there is one)");
  sub->add_option("--transport", arguments->transport, "auto, mapped, staged, direct or resident")
      ->capture_default_str();
  sub->add_option("--batch-size", options.order.batch_size, "Samples a batch")->capture_default_str();
  sub->add_option("--prefetch", options.prefetch, "Batches ahead")->capture_default_str();
  sub->add_option("--threads", options.threads,
                  "Copy threads; on the host the device's (default: 8, host: 2)");
  sub->add_option("--readahead", options.readahead_bytes, "Bytes of reads under way, transport direct")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  sub->add_option("--order", arguments->order, "Order of the samples")
      ->check(CLI::IsMember({"shuffle", "sequential", "windowed"}))
      ->capture_default_str();
  sub->add_option("--window", options.order.window_shards, "Shards a window, windowed order")
      ->capture_default_str();
  arguments->transform.add_to(*sub);
  sub->add_option("--registered", options.registered_bytes,
                  "Budget for registered shards, transport mapped (default: half of the memory there is)")
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--verify", arguments->verify, "Checksums while loading")
      ->check(CLI::IsMember({"never", "first_epoch", "always"}))
      ->capture_default_str();
  add_seconds_option(*sub, arguments->load.seconds,
                     "Of each repeat, at least one epoch; 0: only open and first batch");
  add_repeat_option(*sub, arguments->load.repeats, "Repeats");
  sub->add_option("--make-random", arguments->make_random,
                  "First write so many samples of pseudo-random bytes into DATASET, unless it is there");
  sub->add_option("--make-sparse", arguments->make_sparse,
                  "The same of zeros, in sparse files: to time opening without the bytes");
  sub->add_option("--make-shards", arguments->make_shards, "Shards of --make-sparse")->capture_default_str();
  sub->add_option("--make-side", arguments->make_side, "Their rows and columns")->capture_default_str();
  sub->add_option("--make-dtype", arguments->make_dtype, "u8 (NHWC) or f16, bf16, f32 (NCHW)")
      ->capture_default_str();
  add_json_option(*sub, arguments->json, "Report with every raw sample");
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
