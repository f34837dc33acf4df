// What the rows of local tiers and of servers share.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>

#include "commands/tiers/tiers_bench.hpp"
#include "feeds/batch_pipeline.hpp"
#include "shard/loader/loader.hpp"

namespace shard::bench {

// Stored bytes of a sample, with its share of the shard's head.
double stored_bytes(const DatasetInfo& info);

// The options of a row's loader, without its transport.
LoaderOptions tier_load(const Dataset& dataset, const Device& device, const TierOptions& options);

// Throws corrupt if the loader's first samples of `data` are not those of the folder `reference`.
void check_loader(const std::filesystem::path& data, const std::filesystem::path& reference,
                  const std::shared_ptr<Device>& device, const LoaderOptions& options);

// Epochs from the making of the loader to the last batch on the device: at least `seconds`, at least one
// epoch, but no longer than `at_most` seconds.
BatchRun run_epochs(const std::filesystem::path& data, const std::shared_ptr<Device>& device,
                    const LoaderOptions& options, double seconds, double at_most,
                    const std::atomic<bool>& cancel);

}  // namespace shard::bench
