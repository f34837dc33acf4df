// The rows of a tier: what is done for each.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/files/file.hpp"
#include "base/system/parallel.hpp"
#include "commands/load/load_bench.hpp"
#include "commands/tiers/tiers_bench.hpp"
#include "commands/tiers/tiers_runs.hpp"
#include "feeds/batch_pipeline.hpp"
#include "feeds/row_makers.hpp"
#include "feeds/sample_reference.hpp"
#include "limits/load_limits.hpp"
#include "limits/page_cache.hpp"
#include "limits/pure_decode.hpp"
#include "limits/raw_disk.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"
#include "shard/loader/transform.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kChecked = SampleReference::kChecked;
constexpr double kColdShare = 0.01;  // of the pages that may still be there
constexpr double kRawSeconds = 0.3;
constexpr unsigned kReaders = 64;  // of emulated tiers: as many requests under way as their depth allows

void make_cold(const std::vector<fs::path>& files) {
  const CacheState state = drop_cache(files);
  if (state.share() > kColdShare)
    throw Error(ErrorCode::unsupported,
                fmt::format("cold cannot be measured: {:.0f} % of the pages stay in the page cache, or the "
                            "system does not say which",
                            100 * state.share()));
}

// The raw device under a tier, in bytes per second; measured again when the last time is long ago.
class RawDevice {
 public:
  explicit RawDevice(std::vector<fs::path> files) : files_(std::move(files)) {}
  double rate() {
    if (measured_ && age_.seconds() < 10) return rate_;
    rate_ = raw_rate(files_, kRawSeconds);
    measured_ = true;
    age_.restart();
    return rate_;
  }

 private:
  std::vector<fs::path> files_;
  double rate_ = 0;
  bool measured_ = false;
  Stopwatch age_;
};
constexpr const char* kRawIs = "the raw device: reads of 1 MiB in sequence past the page cache";

// Images a second.
double decoding_alone(const TierImages& images, const DatasetInfo& info, unsigned threads, double seconds) {
  std::atomic<std::uint64_t> next{0};
  const std::uint32_t scaled = convert::decode_options_from(info).fast_min_short_side;
  const Stopwatch watch;
  run_threads(threads, [&](unsigned) {
    std::vector<std::byte> file;
    PureDecoder decoder;
    try {
      while (watch.seconds() < seconds) {
        read_file_into(images.root / images.paths[next++ % images.paths.size()], kMaxImageBytes, file);
        decoder.decode(file, scaled);
      }
    } catch (const Error&) {  // the row itself tells which file is gone
    }
  });
  return static_cast<double>(next) / watch.seconds();
}

BatchPipelineOptions pipeline_options(const DatasetInfo& info, const TierOptions& options, unsigned threads,
                                      std::function<std::unique_ptr<RowMaker>()> maker) {
  BatchPipelineOptions pipeline;
  pipeline.made = made_preprocess(info).sample_spec();
  pipeline.transform = made_transform(info);
  pipeline.batch_size = options.batch_size;
  pipeline.threads = threads;
  pipeline.maker = std::move(maker);
  return pipeline;
}

// check(reference, i, row) for the first `rows` rows that the pipeline makes.
template <class Check>
void check_pipeline(const fs::path& folder, BatchPipeline& pipeline, std::uint64_t rows, const Check& check) {
  SampleReference reference(folder);
  const std::uint64_t size = reference.delivered().size_bytes();
  std::vector<std::byte> out(rows * size);
  pipeline.run(rows, out);
  for (std::uint64_t i = 0; i < rows; ++i) check(reference, i, std::span(out).subspan(i * size, size));
}

void check_images(const TierData& data, BatchPipeline& pipeline) {
  const TierImages& images = data.images();
  std::vector<std::byte> file;
  try {
    check_pipeline(data.datasets()[0], pipeline, std::min<std::uint64_t>(kChecked, images.paths.size()),
                   [&](SampleReference& reference, std::uint64_t i, std::span<const std::byte> row) {
                     read_file_into(images.root / images.paths[i], kMaxImageBytes, file);
                     reference.check_image(images.samples[i], file, row);
                   });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    throw Error(ErrorCode::corrupt, fmt::format("decoding does not give the samples of the data set: {}: are "
                                                "these the images that it was made of?",
                                                error.what()));
  }
}

struct Maker {  // what the tasks of one tier share
  std::string tier;
  const TierData& data;
  std::shared_ptr<Device> device;
  TierOptions options;
  const std::atomic<bool>& cancel;
  std::shared_ptr<RawDevice> raw;

  TierTask loader(std::size_t index, const std::string& label, TransportKind transport,
                  TierCache cache) const {
    const fs::path folder = data.datasets()[index];
    const Dataset dataset = Dataset::open(folder);
    const double bytes = stored_bytes(dataset.info());
    LoaderOptions load = tier_load(dataset, *device, options);
    load.transport = transport;
    TierTask task;
    task.row = {tier, label, fmt::format("loader, {}", to_string(transport)), cache, false, false, bytes};
    task.verify = [folder, load, target = device] { check_loader(folder, folder, target, load); };
    task.measure = [*this, target = device, folder, load, cache, bytes, index](std::string& limit_is) {
      if (cache == TierCache::warm) {
        LoadCase one;
        one.options = load;
        one.seconds = options.seconds;
        one.repeats = 1;
        const auto opened = Dataset::open(folder);
        const LoadResult result = bench_load(opened, {&target, 1}, one);
        limit_is = result.limit_is;
        return TierSample{
            result.samples[0].samples_per_second,
            result.limit_bytes_per_second / (target->info().kind == DeviceKind::cuda
                                                 ? bytes
                                                 : static_cast<double>(mean_sample_bytes(opened))),
            result.samples[0].cores};
      }
      limit_is = kRawIs;
      const double limit = raw->rate() / bytes;
      if (cache == TierCache::cold) make_cold(data.shard_files(index));
      const bool once = cache == TierCache::cold;
      const BatchRun run = run_epochs(folder, device, load, once ? 0 : options.seconds,
                                      30 * std::max(1.0, options.seconds), cancel);
      return TierSample{run.rate(), limit, run.cores()};
    };
    return task;
  }

  TierTask decoder(const std::string& label, TierCache cache) const {
    const DatasetInfo info = Dataset::open(data.datasets()[0]).info();
    const TierImages& images = data.images();
    const double bytes = images.mean_bytes();
    const auto make = [*this, info] {
      return std::make_unique<BatchPipeline>(
          device, pipeline_options(info, options, options.jobs(), [this_data = &data, info] {
            return std::make_unique<ImageMaker>(this_data->images(), info, nullptr);
          }));
    };
    TierTask task;
    task.row = {tier, label, "decode on the fly", cache, true, false, bytes, data.no_images()};
    task.verify = [this_data = &data, make] { check_images(*this_data, *make()); };
    task.measure = [*this, make, info, cache, bytes](std::string& limit_is) {
      const auto pipeline = make();
      const std::uint64_t count = data.images().paths.size();
      if (cache == TierCache::cold) {
        limit_is = kRawIs;
        const double limit = raw->rate() / bytes;
        make_cold(data.image_files());
        const BatchRun run = pipeline->run(count);
        return TierSample{run.rate(), limit, run.cores()};
      }
      limit_is = "whole images to pixels by libjpeg-turbo alone, same threads";
      warm_cache(data.image_files());
      const double limit =
          decoding_alone(data.images(), info, options.jobs(), std::min(options.seconds, 1.0));
      const double rate =
          pipeline->run(std::min<std::uint64_t>(count, 4 * std::uint64_t{options.jobs()})).rate();
      const BatchRun run =
          pipeline->run(std::max(options.batch_size, static_cast<std::uint64_t>(rate * options.seconds)));
      return TierSample{run.rate(), limit, run.cores()};
    };
    return task;
  }
};

}  // namespace

std::vector<TierTask> tier_tasks(const std::string& tier, const TierData& data,
                                 const std::vector<std::string>& labels,
                                 const std::shared_ptr<Device>& device, const TierOptions& options,
                                 const std::atomic<bool>& cancel) {
  const Maker make{tier, data, device, options, cancel, std::make_shared<RawDevice>(data.shard_files(0))};
  const bool gpu = device->info().kind == DeviceKind::cuda;
  std::vector<TierTask> tasks;
  for (const TierCache cache : {TierCache::cold, TierCache::warm}) {
    if (cache == TierCache::cold && data.memory()) continue;
    tasks.push_back(make.decoder(labels[0], cache));
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Dataset dataset = Dataset::open(data.datasets()[i]);
      if (!dataset.info().codec.framed(dataset.info().spec) || (gpu && decodes_frames(dataset.info())))
        tasks.push_back(make.loader(i, labels[i], TransportKind::mapped, cache));
      tasks.push_back(make.loader(i, labels[i], TransportKind::staged, cache));
      if (gpu && cache == TierCache::warm)
        tasks.push_back(make.loader(i, labels[i], TransportKind::resident, cache));
    }
  }
  if (!data.memory())
    for (std::size_t i = 0; i < labels.size(); ++i)
      tasks.push_back(make.loader(i, labels[i], TransportKind::direct, TierCache::around));
  return tasks;
}

std::vector<TierTask> emulated_tasks(const EmulatedTier& tier, const TierData& data,
                                     const std::vector<std::string>& labels,
                                     const std::shared_ptr<Device>& device, const TierOptions& options,
                                     const std::atomic<bool>& cancel) {
  const std::string name = tier.name + " (emulated)";
  std::vector<TierTask> tasks;
  const auto add = [&](TierRow row, std::size_t index, double most_rate, auto maker_of) {
    const fs::path folder = data.datasets()[index];
    const DatasetInfo info = Dataset::open(folder).info();
    const auto make = [=](Throttle* throttle) {
      return std::make_unique<BatchPipeline>(
          device, pipeline_options(info, options, kReaders, [=] { return maker_of(info, throttle); }));
    };
    TierTask task;
    const EmulatedTier fast{"", 1e15, 0, kReaders};
    const double limit = tier.bytes_per_second / row.bytes_per_sample;
    if (row.decodes)
      task.verify = [=, &data] {
        Throttle throttle(fast);
        check_images(data, *make(&throttle));
      };
    else
      task.verify = [=] {
        Throttle throttle(fast);
        check_pipeline(
            folder, *make(&throttle), std::min(kChecked, info.samples()),
            [](SampleReference& reference, std::uint64_t i, auto made) { reference.check(i, made); });
      };
    task.measure = [=, &cancel](std::string& limit_is) {
      stop_when(cancel);
      limit_is = "the emulated bandwidth";
      Throttle throttle(tier);
      const auto pipeline = make(&throttle);
      const double rows = std::min({limit, most_rate, 1e6}) * options.seconds;
      const BatchRun run = pipeline->run(std::max<std::uint64_t>(32, static_cast<std::uint64_t>(rows)));
      return TierSample{run.rate(), limit, run.cores()};
    };
    task.row = std::move(row);
    tasks.push_back(std::move(task));
  };
  const TierImages& images = data.images();
  const double image_bytes = images.mean_bytes();
  const double requests = tier.latency_seconds > 0 ? tier.depth / tier.latency_seconds : 1e9;
  add({name, labels[0], "decode on the fly", TierCache::cold, true, true, image_bytes, images.problem}, 0,
      std::min(requests, 600.0 * options.jobs()), [&data](const DatasetInfo& info, Throttle* throttle) {
        return std::make_unique<ImageMaker>(data.images(), info, throttle);
      });
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Dataset dataset = Dataset::open(data.datasets()[i]);
    const double bytes = stored_bytes(dataset.info());
    add({name, labels[i], "precomputed, in sequence", TierCache::cold, false, true, bytes}, i, 1e5,
        [dataset](const DatasetInfo&, Throttle* throttle) {
          return std::make_unique<SampleMaker>(dataset, *throttle);
        });
  }
  return tasks;
}

}  // namespace shard::bench
