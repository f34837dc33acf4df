// The rows of a server that has copies of the data sets.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text/quote.hpp"
#include "commands/tiers/tiers_bench.hpp"
#include "commands/tiers/tiers_runs.hpp"
#include "harness/temp_folder.hpp"
#include "limits/network.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr double kNetworkSeconds = 2;

void require_copy(const Dataset& there, const fs::path& folder) {
  const Dataset here = Dataset::open(folder);
  if (there.info().shards != here.info().shards)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is not a copy of {}: copy the data set there first (shardctl copy)",
                            quoted(there.path()), quoted(folder)));
}

}  // namespace

std::vector<TierTask> server_tasks(const ServerTier& tier, const std::vector<std::string>& labels,
                                   const std::shared_ptr<Device>& device, const TierOptions& options,
                                   const std::atomic<bool>& cancel) {
  std::vector<TierTask> tasks;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const fs::path address = tier.addresses[i];
    const fs::path folder = tier.folders[i];
    const Dataset dataset = Dataset::open(address);
    require_copy(dataset, folder);
    const double bytes = stored_bytes(dataset.info());
    const LoaderOptions load = tier_load(dataset, *device, options);
    const auto kept = std::make_shared<TempFolder>(tier.cache);
    const auto row = [&](const char* candidate, TierCache cache) {
      return TierRow{tier.name, labels[i], candidate, cache, false, false, bytes};
    };
    const auto epochs = [=, &cancel](const fs::path& cache, double seconds) {
      LoaderOptions with = load;
      with.remote.cache = cache;
      return run_epochs(address, device, with, seconds, 30 * std::max(1.0, options.seconds), cancel);
    };

    TierTask cold;
    cold.row = row("loader, fetched", TierCache::cold);
    cold.verify = [=] { check_loader(address, folder, device, load); };
    cold.measure = [=, info = dataset.info(), parent = tier.cache](std::string& limit_is) {
      limit_is = kNetworkIs;
      const double limit = network_rate(address, info, kNetworkSeconds) / bytes;
      const TempFolder fresh(parent);
      const BatchRun run = epochs(fresh.path(), 0);
      return TierSample{run.rate(), limit, run.cores()};
    };
    tasks.push_back(std::move(cold));

    TierTask warm;
    warm.row = row("loader, from its cache", TierCache::warm);
    warm.verify = [=] { epochs(kept->path(), 0); };
    warm.measure = [=](std::string&) {
      const BatchRun run = epochs(kept->path(), options.seconds);
      return TierSample{run.rate(), 0, run.cores()};
    };
    tasks.push_back(std::move(warm));
  }
  return tasks;
}

std::vector<fs::path> addresses_of(const fs::path& place, const std::vector<fs::path>& folders) {
  if (folders.size() == 1) return {place};
  std::string base = place.string();
  while (base.ends_with('/')) base.pop_back();
  std::vector<fs::path> addresses;
  for (const fs::path& folder : folders) {
    fs::path plain = folder.lexically_normal();
    if (!plain.has_filename()) plain = plain.parent_path();
    addresses.emplace_back(base + '/' + plain.filename().string());
  }
  return addresses;
}

}  // namespace shard::bench
