#include "commands/load/load_bench.hpp"

#include <future>
#include <optional>

#include "harness/measure.hpp"
#include "harness/stats.hpp"
#include "limits/decode_limit.hpp"
#include "limits/load_limits.hpp"
#include "limits/network.hpp"

namespace shard::bench {

namespace {

constexpr double kWarmStep = 0.2;  // seconds
constexpr double kWarmUp = 60;
constexpr double kNetworkSeconds = 1;
constexpr double kDecodeSeconds = 1;
constexpr double kShard = 6;  // in which a shard is registered on a GPU, pauses included

double median(const std::vector<double>& values) { return median_of(values, std::identity{}); }

// Measured in turn with the loaders.
class Limits {
 public:
  Limits(const Dataset& dataset, std::span<const std::shared_ptr<Device>> devices,
         const LoaderOptions& options, TransportKind transport)
      : dataset_(dataset),
        devices_(devices),
        options_(options),
        sample_bytes_(mean_sample_bytes(dataset)),
        frame_bytes_(mean_frame_bytes(dataset)) {
    if (dataset.is_unconverted())
      decode_.emplace(dataset.path().native(), options.threads);
    else if (transport == TransportKind::direct && !dataset.is_remote())
      disk_.emplace(dataset, options);
  }
  void measure() {
    if (decode_) {
      limits_.push_back(decode_->measure(kDecodeSeconds) * static_cast<double>(sample_bytes_));
    } else if (dataset_.is_remote()) {
      limits_.push_back(network_rate(dataset_.folder(), dataset_.info(), kNetworkSeconds));
    } else if (disk_) {
      limits_.push_back(disk_->fastest());
      random_.push_back(disk_->as_loader());
    } else if (devices_[0]->info().kind == DeviceKind::host) {
      limits_.push_back(gather_limit(dataset_, *devices_[0], options_));
    } else {
      limits_.push_back(link_limit(devices_));
    }
  }
  void report(LoadResult& result) const {
    result.limit_bytes_per_second = median(limits_);
    result.frame_bytes = frame_bytes_;
    result.limit_frame_bytes_per_second = result.limit_bytes_per_second * frames_of_limit();
    result.random_bytes_per_second = median(random_);
    if (disk_) result.random_is = disk_->as_loader_is();
    result.limit_is = decode_                ? kDecodeIs
                      : dataset_.is_remote() ? kNetworkIs
                      : disk_                ? "the disk as fast as it was seen: " + disk_->fastest_is()
                      : devices_[0]->info().kind == DeviceKind::host
                          ? "bare gather of what is stored, same threads, same samples"
                          : "pinned memory to the device, blocks of 256 MiB";
  }

 private:
  // Bytes of frames for each byte of the limit.
  double frames_of_limit() const {
    if (frame_bytes_ == 0) return 0;
    if (dataset_.is_remote() || disk_) return 1;
    if (devices_[0]->info().kind == DeviceKind::host)  // it copies frames, and counts samples
      return frame_bytes_ / static_cast<double>(sample_bytes_);
    return decodes_frames(dataset_.info()) ? 1 : 0;
  }
  const Dataset& dataset_;
  std::span<const std::shared_ptr<Device>> devices_;
  const LoaderOptions& options_;
  std::uint64_t sample_bytes_;
  double frame_bytes_;
  std::optional<DiskLimit> disk_;
  std::optional<DecodeLimit> decode_;  // of images that are not converted
  std::vector<double> limits_;
  std::vector<double> random_;
};

// One device's loader and consumer.
class Consumer {
 public:
  Consumer(const Dataset& dataset, const std::shared_ptr<Device>& device, const LoaderOptions& options)
      : loader_(dataset, device, options), stream_(device->create_stream()) {}

  void first_batch() {
    auto batch = loader_.next();
    if (!batch) return;
    consume(*batch);
    stream_->synchronize();
  }
  // An epoch, or the rest of it where it runs already. Returns its samples.
  double run_epoch(std::uint64_t epoch) {
    std::uint64_t samples = 0;
    for (Batch& batch : loader_.epoch(epoch)) {
      samples += batch.size();
      consume(batch);
    }
    stream_->synchronize();
    epoch_ = epoch;
    return static_cast<double>(samples);
  }
  // Its samples from now until so many seconds after `since`.
  double run_until(const Stopwatch& since, double seconds) {
    std::uint64_t samples = 0;
    while (since.seconds() < seconds) {
      for (Batch& batch : loader_.epoch(epoch_)) {
        samples += batch.size();
        consume(batch);
        if (since.seconds() >= seconds) break;
      }
      ++epoch_;
    }
    stream_->synchronize();
    return static_cast<double>(samples);
  }
  std::uint32_t prefetch() const { return loader_.options().prefetch; }
  std::uint64_t together() const { return std::max<std::uint64_t>(loader_.options().together, 1); }
  // Samples per second of whole epochs until `seconds` are over; at least one. The clock starts when a batch
  // arrives that was not ready before: those that the loader brought during a pause, and that batch, do not
  // count.
  double run(double seconds) {
    const std::uint64_t ready = (prefetch() + std::uint64_t{1}) * together() + 1;
    std::uint64_t taken = 0;
    std::uint64_t samples = 0;
    Stopwatch watch;
    do {
      for (Batch& batch : loader_.epoch(++epoch_)) {
        samples += batch.size();
        consume(batch);
        if (++taken != ready) continue;
        stream_->synchronize();
        samples = 0;
        watch.restart();
      }
    } while (watch.seconds() < seconds || taken <= ready);
    stream_->synchronize();
    return static_cast<double>(samples) / watch.seconds();
  }
  LoaderStats stats() const { return loader_.stats(); }

 private:
  void consume(Batch& batch) {
    batch.wait_on(*stream_);
    batch.release();
  }
  Loader loader_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t epoch_ = 0;
};

// Epochs by `run_some` for pages, residents, and registrations, which go on beside the batches.
void warm_up(const Dataset& dataset, const Device& device,
             std::span<const std::unique_ptr<Consumer>> consumers, const std::function<void()>& run_some) {
  const auto registered = [&] {
    std::uint64_t bytes = 0;
    for (const auto& consumer : consumers) bytes += consumer->stats().registered_bytes;
    return bytes;
  };
  // Each rank registers all shards (by_shard: its part, and then registered() stops growing).
  const auto all_registered = [&] {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i)
      bytes += dataset.shard(i).header().images_end - dataset.shard(i).header().images_begin;
    return registered() >= bytes * consumers.size();
  };
  const TransportKind transport = consumers[0]->stats().transport;
  const bool registers = (transport == TransportKind::mapped || transport == TransportKind::resident) &&
                         device.info().kind == DeviceKind::cuda;
  const Stopwatch warming;
  Stopwatch grown;
  do {
    const std::uint64_t before = registered();
    run_some();
    if (registered() > before) grown.restart();
  } while (registers && !all_registered() && grown.seconds() < kShard && warming.seconds() < kWarmUp);
}

}  // namespace

LoadResult bench_load(const Dataset& dataset, std::span<const std::shared_ptr<Device>> devices,
                      const LoadCase& load, const std::function<void(const LoadResult&)>& done) {
  LoadResult result;
  const Stopwatch made;
  std::vector<std::unique_ptr<Consumer>> consumers;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    LoaderOptions options = load.options;
    options.rank = static_cast<std::uint32_t>(i);
    options.world_size = static_cast<std::uint32_t>(devices.size());
    options.as_stored.insert("*");  // columns that the case does not name are not what is measured
    consumers.push_back(std::make_unique<Consumer>(dataset, devices[i], options));
    if (i > 0) continue;
    consumers[0]->first_batch();
    result.first_batch_seconds = made.seconds();
  }
  // The sum of what `work` returns for each consumer, each on a thread of its own.
  const auto sum = [&](const auto& work) {
    std::vector<std::future<double>> running;
    for (const auto& consumer : consumers)
      running.push_back(std::async(std::launch::async, [&] { return work(*consumer); }));
    double all = 0;
    for (auto& one : running) all += one.get();
    return all;
  };
  const auto run_all = [&](double seconds) {
    return sum([seconds](Consumer& consumer) { return consumer.run(seconds); });
  };
  for (std::uint32_t epoch = 0; epoch < load.first_epochs; ++epoch) {
    const Stopwatch watch;
    const double samples = sum([epoch](Consumer& consumer) { return consumer.run_epoch(epoch); });
    result.first_epochs.push_back(samples / watch.seconds());
  }
  if (load.first_seconds > 0) {
    const double samples =
        sum([&](Consumer& consumer) { return consumer.run_until(made, load.first_seconds); });
    result.first_seconds_rate = samples / made.seconds();
  }
  if (load.seconds > 0) warm_up(dataset, *devices[0], consumers, [&] { run_all(kWarmStep); });
  const std::uint64_t sample_bytes = mean_sample_bytes(dataset);
  LoaderOptions measured = load.options;
  measured.prefetch = consumers[0]->prefetch();
  Limits limits(dataset, devices, measured, consumers[0]->stats().transport);
  const auto report = [&] {
    limits.report(result);
    result.stats.clear();
    for (const auto& consumer : consumers) result.stats.push_back(consumer->stats());
    if (done) done(result);
  };
  report();
  for (std::uint32_t repeat = 0; load.seconds > 0 && repeat < load.repeats; ++repeat) {
    limits.measure();
    const RunClock clock;
    const double rate = run_all(load.seconds);
    result.samples.push_back({rate, rate * static_cast<double>(sample_bytes), clock.elapsed().cores()});
    report();
  }
  return result;
}

}  // namespace shard::bench
