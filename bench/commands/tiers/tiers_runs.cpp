#include "commands/tiers/tiers_runs.hpp"

#include <algorithm>

#include "feeds/sample_reference.hpp"
#include "feeds/tier_data.hpp"

namespace shard::bench {

namespace fs = std::filesystem;

double stored_bytes(const DatasetInfo& info) {
  return static_cast<double>(shard_bytes(info)) /
         static_cast<double>(std::max<std::uint64_t>(1, info.samples()));
}

void check_loader(const fs::path& data, const fs::path& folder, const std::shared_ptr<Device>& device,
                  const LoaderOptions& options) {
  SampleReference reference(folder);
  Loader loader(Dataset::open(data), device, options);
  const auto stream = device->create_stream();
  std::uint64_t left = SampleReference::kChecked;
  loader.start_epoch(0);
  for (auto batch = loader.next(); batch && left > 0; batch = loader.next()) {
    batch->wait_on(*stream);
    left -= reference.check_batch(*stream, batch->images().data, batch->ids(), left);
    batch->release();
  }
}

// Epochs from the making of the loader to the last batch on the device: at least `seconds`, at least one
// epoch, but no longer than `at_most` seconds.
BatchRun run_epochs(const fs::path& folder, const std::shared_ptr<Device>& device,
                    const LoaderOptions& options, double seconds, double at_most,
                    const std::atomic<bool>& cancel) {
  const auto dataset = Dataset::open(folder);
  const auto stream = device->create_stream();
  std::uint64_t rows = 0;
  const RunClock clock;
  const Stopwatch watch;
  Loader loader(dataset, device, options);
  bool more = true;
  for (std::uint64_t epoch = 0; more; ++epoch) {
    for (Batch& batch : loader.epoch(epoch)) {
      rows += batch.size();
      batch.wait_on(*stream);
      batch.release();
      stop_when(cancel, kStoppedAndRemoved);
      more = watch.seconds() < at_most;
      if (!more) break;
    }
    more = more && watch.seconds() < seconds;
  }
  stream->synchronize();
  return {clock.elapsed(), rows};
}

LoaderOptions tier_load(const Dataset& dataset, const Device& device, const TierOptions& options) {
  LoaderOptions load;
  load.transform = delivered_transform(dataset.info());
  load.as_stored = {"*"};  // images are what is measured
  load.order = options.order;
  load.batch_size = std::min(options.batch_size, dataset.size());
  if (device.info().kind == DeviceKind::host) load.threads = options.jobs();
  return load;
}

}  // namespace shard::bench
