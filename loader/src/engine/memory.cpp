#include "shard/loader/memory.hpp"

#include <algorithm>

#include "base/system/system_memory.hpp"
#include "codec/stored_form.hpp"
#include "direct/direct_alignment.hpp"
#include "direct/direct_file.hpp"
#include "fields/fields.hpp"
#include "setup/loader_options.hpp"
#include "shard/error.hpp"
#include "transport/choose.hpp"
#include "transport/memory_plan.hpp"
#include "transport/registered_files.hpp"
#include "transport/registered_shards.hpp"

namespace shard {

namespace {

// What transport mapped registers.
std::uint64_t registered_bytes(const Dataset& dataset, const LoaderOptions& options) {
  const DatasetInfo& info = dataset.info();
  const auto form = make_stored_form(info);
  const bool with_fields = !options.fields.empty();
  if (form->fixed_size() && !with_fields) return info.samples() * form->most_bytes_to_device();
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < info.shards.size(); ++i) {
    bytes += registered_range(dataset.shard(i), with_fields).size();
  }
  return bytes;
}

std::uint32_t alignment_of(const Dataset& dataset) {
  const ShardReader& first = dataset.shard(0);
  try {
    return direct_alignment(DirectFile(first).descriptor(), first.file_size_bytes());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    throw Error(ErrorCode::unsupported, error.what());
  }
}

// The memory with transport `link`. Throws if that transport is not possible.
LoaderMemory memory_by(TransportKind link, const Dataset& dataset, const DeviceInfo& device,
                       const LoaderOptions& options) {
  const DatasetInfo& info = dataset.info();
  const std::uint64_t slots = std::uint64_t{options.prefetch} + 1;
  const SlotMemory slot = slot_memory(info, device, options, link);
  LoaderMemory memory;
  memory.transport = link;
  if (link == TransportKind::mapped) {
    const std::uint64_t budget = registered_budget_bytes(options);
    check_mapped(info, device, options, budget);
    if (!device.reads_host_memory)
      memory.registered_bytes = std::min(registered_bytes(dataset, options), budget);
  } else if (link == TransportKind::direct) {
    memory.pinned_bytes = slots * direct_memory(info, options, alignment_of(dataset)).slot_bytes;
  } else {
    memory.pinned_bytes = staging_memory(info, options, last_cache_bytes()).size_bytes();
    if (const std::uint64_t archives = registrable_file_bytes(dataset, device); archives != 0)
      memory.registered_bytes = std::min(archives, registered_budget_bytes(options));
  }
  const std::uint64_t late = late_memory(info, device, options, link).size_bytes();
  memory.device_bytes = slots * (slot.images_bytes + slot.raw_bytes + slot.columns_bytes) +
                        compute_memory(info, device, options).size_bytes() + late;
  memory.pinned_bytes += slots * (slot.columns_bytes + slot.verdict_bytes) + late;
  return memory;
}

}  // namespace

LoaderMemory plan_memory(const Dataset& data, const DeviceInfo& device, const LoaderOptions& requested,
                         std::uint64_t free_device_bytes) {
  const Dataset dataset = for_device(data, device);
  const DatasetInfo& info = dataset.info();
  const LoaderOptions options = check_loader_options(requested, dataset, device);
  const std::uint64_t samples = make_order(dataset, options).samples_of_rank();
  const std::vector<TransportKind> kinds =
      transports_to_try(info, device, options, available_memory_bytes(), source_of(dataset));
  LoaderMemory memory;
  for (const TransportKind kind : kinds) {
    try {
      memory = memory_by(kind, dataset, device, options);
      break;
    } catch (const Error& error) {
      if (kind == kinds.back() || !may_be_replaced(error)) throw;
    }
  }
  if (options.transport != TransportKind::resident) return memory;
  const std::uint64_t left = free_device_bytes - std::min(free_device_bytes, memory.device_bytes);
  memory.device_bytes += resident_memory(info, options, samples, left).capacity_bytes;
  return memory;
}

LoaderMemory plan_memory(const Dataset& dataset, Device& device, const LoaderOptions& options) {
  const bool counts = options.transport == TransportKind::resident && options.memory.resident_bytes == 0;
  return plan_memory(dataset, device.info(), options, counts ? device.free_memory_bytes() : 0);
}

}  // namespace shard
