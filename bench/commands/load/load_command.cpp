#include <memory>
#include <string>
#include <vector>

#include "base/digest/mix64.hpp"
#include "base/system/cpu_count.hpp"
#include "base/system/stopwatch.hpp"
#include "cli/help_format.hpp"
#include "commands.hpp"
#include "commands/load/load_bench.hpp"
#include "data/load_data.hpp"
#include "feeds/loader_arguments.hpp"
#include "harness/stats.hpp"
#include "limits/load_limits.hpp"
#include "sections.hpp"
#include "shard/convert/source.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct LoadArguments {
  std::string dataset, cache, device = "auto", transport = "auto", order = "shuffle", draw = "once";
  std::string verify = "never", buckets;
  Outputs outputs;
  std::uint64_t make_random = 0;
  std::uint64_t make_sparse = 0;
  std::uint64_t make_shards = 1000;
  std::uint32_t make_side = 224;
  std::uint32_t make_channels = 3;
  std::string make_dtype = "u8";
  bool make_any_size = false;
  TransformArguments transform;
  LoadCase load;
  CLI::Option* batch_size = nullptr;
};

void apply(LoadArguments& arguments) {
  LoaderOptions& options = arguments.load.options;
  options.remote.cache = arguments.cache;
  options.transport = transport_of(arguments.transport);
  options.transform = arguments.transform.options();
  options.buckets = buckets_of(arguments.buckets);
  if (arguments.order == "sequential") options.order = OrderMode::sequential;
  if (arguments.order == "windowed") options.order = OrderMode::windowed;
  if (arguments.verify == "always") options.verify = Verify::always;
  if (arguments.verify == "first_epoch") options.verify = Verify::first_epoch;
}

// Sets what an epoch draws, and returns the data set that it is drawn from.
Dataset drawn(const Dataset& data, const std::string& draw, LoaderOptions& options) {
  const std::uint64_t half = data.size() / 2;
  if (draw == "subset")
    return data.select(
        Selection::where([](const Dataset&, std::uint64_t index) { return mix64(index) % 2 == 0; }));
  if (draw == "balanced") {
    std::vector<std::uint32_t> classes(data.size());
    for (std::uint64_t i = 0; i < data.size(); ++i) classes[i] = static_cast<std::uint32_t>(mix64(i) % 1000);
    options.sampling = Sampling::grouped(classes, std::vector<double>(1000, 1.0));
  } else if (draw == "weighted") {
    std::vector<double> weights(data.size());
    for (std::uint64_t i = 0; i < data.size(); ++i) weights[i] = static_cast<double>(mix64(i) % 1000);
    options.sampling = Sampling::weighted(weights);
  } else if (draw == "mix") {
    const Sampling::Part parts[] = {{half, 0.7}, {data.size() - half, 0.3}};
    options.sampling = Sampling::mix(parts);
  } else if (draw == "repeated") {
    options.repeats = 4;
  }
  return data;
}

// An epoch without a whole batch would deliver nothing, for ever.
// The default is made smaller, and the report says what it was.
void fit_batch(const LoadArguments& arguments, std::uint64_t samples, std::size_t ranks,
               LoaderOptions& options) {
  const std::uint64_t most = samples / ranks / options.repeats * options.repeats;
  if (options.batch_size <= most) return;
  if (arguments.batch_size->count() > 0 || most == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--batch-size {}: an epoch of {} samples has no whole batch for {} of {}; give "
                            "at most {}, or a data set "
                            "with more samples",
                            options.batch_size, samples, ranks == 1 ? "the loader" : "each", ranks, most));
  options.batch_size = static_cast<std::uint32_t>(most);
}

void make_data(const LoadArguments& arguments) {
  const auto dtype = dtype_from_option(arguments.make_dtype);
  if (!dtype) refuse_value("--make-dtype", arguments.make_dtype, "u8, u16, f16, bf16 or f32");
  const bool whole = *dtype == DType::u8 || *dtype == DType::u16;
  const Layout layout = whole ? Layout::nhwc : Layout::nchw;
  const SampleSpec spec{*dtype, layout, arguments.make_channels, arguments.make_side, arguments.make_side};
  if (arguments.make_sparse > 0)
    make_sparse_dataset(arguments.dataset, arguments.make_sparse, arguments.make_shards, spec,
                        arguments.make_any_size);
  else
    make_random_dataset(arguments.dataset, arguments.make_random, spec, cpu_count(), arguments.make_any_size);
}

void add_json(Json& json, const LoadArguments& arguments, const LoadResult& result, const Device& device,
              std::uint64_t sample_bytes, double open_seconds, bool remote) {
  json["device"] = device.info().name;
  json["devices"] = result.stats.size();
  json["sample_bytes"] = sample_bytes;
  if (result.frame_bytes > 0) json["stored_sample_bytes"] = result.frame_bytes;
  json["batch_size"] = arguments.load.options.batch_size;
  json["transport"] = to_string(result.stats[0].transport);
  json["reason"] = result.stats[0].reason;
  json["limit_bytes_per_second"] = result.limit_bytes_per_second;
  json["limit_is"] = result.limit_is;
  if (result.limit_frame_bytes_per_second > 0)
    json["limit_stored_bytes_per_second"] = result.limit_frame_bytes_per_second;
  json["random_bytes_per_second"] = result.random_bytes_per_second;
  if (!result.random_is.empty()) json["random_is"] = result.random_is;
  if (!result.first_epochs.empty()) json["first_epochs_samples_per_second"] = result.first_epochs;
  if (result.first_seconds_rate > 0) {
    json["first_seconds"] = arguments.load.first_seconds;
    json["first_seconds_samples_per_second"] = result.first_seconds_rate;
  }
  json["open_seconds"] = open_seconds;
  json["first_batch_seconds"] = result.first_batch_seconds;
  if (!result.samples.empty()) {
    const double rate = median_of(result.samples, &LoadSample::bytes_per_second);
    json["samples_per_second"] = rate / static_cast<double>(sample_bytes);
    json["bytes_per_second"] = rate;
    json["share_of_limit"] = rate / result.limit_bytes_per_second;
    if (result.frame_bytes > 0) {
      const double frames = rate / static_cast<double>(sample_bytes) * result.frame_bytes;
      json["stored_bytes_per_second"] = frames;
      if (result.limit_frame_bytes_per_second > 0)
        json["share_of_limit_by_stored_bytes"] = frames / result.limit_frame_bytes_per_second;
    }
  }
  json["samples"] = Json::array();
  for (const LoadSample& sample : result.samples)
    json["samples"].push_back({{"samples_per_second", sample.samples_per_second},
                               {"bytes_per_second", sample.bytes_per_second},
                               {"cores", sample.cores}});
  if (remote) {
    json["fetched_bytes"] = result.stats[0].fetched_bytes;
    json["requests"] = result.stats[0].requests;
    json["retries"] = result.stats[0].retries;
    json["fetch_seconds"] = result.stats[0].fetch_seconds;
  }
  json["registered_bytes"] = result.stats[0].registered_bytes;
  json["pinned_bytes"] = result.stats[0].pinned_bytes;
  json["device_bytes"] = result.stats[0].device_bytes;
}

int run_load(LoadArguments& arguments, const std::string& command) {
  apply(arguments);
  if (arguments.make_random > 0 || arguments.make_sparse > 0) make_data(arguments);
  Report report("load", command, arguments.outputs);
  const unsigned threads = arguments.load.options.threads;
  const auto devices = devices_of(arguments.device, threads != 0 ? threads : 2);
  const Stopwatch opening;
  const auto whole = convert::open_data(arguments.dataset);
  const double open_seconds = opening.seconds();
  const Dataset dataset = drawn(whole, arguments.draw, arguments.load.options);
  fit_batch(arguments, dataset.size(), devices.size(), arguments.load.options);
  const std::uint64_t sample_bytes = mean_sample_bytes(dataset);
  bench_load(dataset, devices, arguments.load, [&](const LoadResult& now) {
    add_json(report.json(), arguments, now, *devices[0], sample_bytes, open_seconds, dataset.is_remote());
    report.save(now.samples.size(), arguments.load.repeats);
  });
  report.finish(load_section);
  return 0;
}

// Of a data set that is made first.
void add_making_options(CLI::App& sub, LoadArguments& arguments) {
  sub.add_option("--make-random", arguments.make_random,
                 R"(
First write N pseudo-random samples to DATASET, if it does not exist)")
      ->default_str("");
  sub.add_option("--make-sparse", arguments.make_sparse,
                 "The same with zeros in sparse files, to time opening")
      ->default_str("");
  sub.add_option("--make-shards", arguments.make_shards, "Shards of --make-sparse");
  sub.add_option("--make-side", arguments.make_side, "Rows and columns of the samples made");
  sub.add_flag("--make-any-size", arguments.make_any_size,
               "Each sample has rows and columns of its own, 0.6 to 1.4 of --make-side");
  sub.add_option("--make-channels", arguments.make_channels, "Their channels, 1 to 4096");
  sub.add_option("--make-dtype", arguments.make_dtype,
                 "Their dtype: u8 or u16 (NHWC), or f16, bf16 or f32 (NCHW)")
      ->type_name("u8|u16|f16|bf16|f32");
}

}  // namespace

void add_load(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<LoadArguments>();
  LoaderOptions& options = arguments->load.options;
  CLI::App& sub = subcommands.add("load", R"(
      Compare the loader with the link to the GPU, the disk, or a bare copy loop

      Times the loader on a data set, and its limit in the same process: on a GPU the link (large blocks of pinned
      memory), on the host a bare copy of the same samples by the same threads, for transport direct the disk. Of
      images that are not converted: libjpeg-turbo alone, on as many threads.

      Example: shardbench load out/train --device cuda --dtype f16 --layout nchw)",
                                  arguments, run_load);
  sub.add_option("DATASET", arguments->dataset,
                 "A folder made by shardify, or its address (https://, s3://); or images as they are: a "
                 "folder, tar archives, a list")
      ->required();
  sub.add_option("--cache", arguments->cache,
                 "Of a data set on a server: the folder for its shards, which stays")
      ->type_name("DIR");
  add_size_option(sub, "--cache-bytes", options.remote.cache_bytes, "The most bytes in it")
      ->default_str("what the disk has");
  add_device_option(sub, arguments->device, "host, cuda, or cuda:N,M,... for one rank on each of these GPUs");
  sub.add_option("--transport", arguments->transport, "auto, mapped, staged, direct or resident")
      ->type_name("auto|mapped|staged|direct|resident");
  arguments->batch_size =
      sub.add_option("--batch-size", options.batch_size,
                     "Samples per batch; fewer than the default where an epoch has fewer");
  sub.add_option("--prefetch", options.prefetch, "Batches ahead; 0: 4, of JPEGs on a GPU 4096 rows");
  sub.add_option("--together", options.together,
                 "Batches that are made as one; 0: on a GPU as many as have 256 rows in 64 MiB");
  sub.add_option("--threads", options.threads, "Copy threads; on the host, threads of the device")
      ->default_str("12, host: 2");
  add_size_option(sub, "--readahead-bytes", options.memory.readahead_bytes, "Reads in progress, for direct");
  sub.add_option("--order", arguments->order, "Order of the samples: shuffle, sequential or windowed")
      ->type_name("NAME")
      ->check(CLI::IsMember({"shuffle", "sequential", "windowed"}));
  sub.add_option("--draw", arguments->draw, R"(
What an epoch draws: each sample once, a subset of half of them, 1000 pseudo-random classes balanced, by weights, a mix
of two halves (0.7 and 0.3), or each sample four times in a batch (repeated))")
      ->type_name("NAME")
      ->check(CLI::IsMember({"once", "subset", "balanced", "weighted", "mix", "repeated"}));
  sub.add_option("--window-shards", options.window_shards, "Shards per window, for windowed");
  arguments->transform.add_to(sub);
  sub.add_option("--buckets", arguments->buckets, R"(
Of samples of any size: AREA:STEP:ASPECT, batches of one of the sizes of about AREA pixels, as 65536:16:3)")
      ->type_name("BUCKETS");
  sub.add_option("--batch-pixels", options.batch_pixels,
                 "With --buckets: pixels of a batch; 0: --batch-size");
  sub.add_option("--length-window", options.length_window,
                 "With --padded: sort so many samples of the order by size; 0: none");
  add_size_option(sub, "--batch-bytes", options.memory.batch_bytes,
                  "Of samples of any size: bytes of a batch on the device at a time")
      ->default_str("what nearly all have");
  add_size_option(sub, "--registered-bytes", options.memory.registered_bytes,
                  "Budget for registered shards, for mapped")
      ->default_str("half of the available memory");
  sub.add_option("--verify", arguments->verify, R"(
Compare checksums while loading: never, first_epoch or always)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"never", "first_epoch", "always"}));
  add_seconds_option(sub, arguments->load.seconds,
                     "Length of a repeat, at least one epoch; 0: only open, and the first batch");
  add_repeat_option(sub, arguments->load.repeats, "Number of repeats");
  sub.add_option("--first-epochs", arguments->load.first_epochs,
                 "Time the first N epochs one by one, before the warm-up");
  sub.add_option("--first-seconds", arguments->load.first_seconds,
                 "Count what comes in the first S seconds, the loader's making included")
      ->type_name("S")
      ->check(CLI::Range(0.0, 600.0))
      ->excludes("--first-epochs");
  add_making_options(sub, *arguments);
  add_quick_option(sub, arguments->load.repeats, arguments->load.seconds, 0.5);
  add_output_options(sub, arguments->outputs, "Write the report with every sample as JSON");
  cli::show_in_help(sub, {"--cache",       "--device", "--transport", "--batch-size", "--prefetch",
                          "--threads",     "--order",  "--crop",      "--resize",     "--flip",
                          "--dtype",       "--layout", "--verify",    "--seconds",    "--repeat",
                          "--make-random", "--quick",  "--json",      "--help",       "--help-all"});
}

}  // namespace shard::bench
