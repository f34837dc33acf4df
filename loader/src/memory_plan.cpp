#include "memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "base/system_memory.hpp"
#include "codec/stored_form.hpp"
#include "delivered_columns.hpp"
#include "format/shard_profile.hpp"
#include "shard/error.hpp"
#include "verdict.hpp"
#include "views.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kColumnAlign = 256;
constexpr std::uint64_t kPage = 4096;

std::uint64_t slots_of(const LoaderOptions& options) { return std::uint64_t{options.prefetch} + 1; }

}  // namespace

std::uint64_t shard_bytes(const DatasetInfo& info) {
  std::uint64_t total = 0;
  for (const ShardSummary& shard : info.shards) total += shard.size_bytes;
  return total;
}

SlotMemory slot_memory(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                       TransportKind link) {
  const std::uint64_t batch = options.batch_size;
  const auto form = make_stored_form(info);
  SlotMemory memory;
  for (const TransformWork& view : plan_views(info, options)) {
    memory.images_offsets.push_back(round_up(memory.images_bytes, kColumnAlign));
    memory.images_bytes = memory.images_offsets.back() + view.delivered.size_bytes() * batch;
  }
  const bool in_place = link == TransportKind::mapped && device.reads_host_memory &&
                        options.transport != TransportKind::resident;
  if (!in_place && !delivers_stored(info, options)) memory.raw_bytes = form->most_bytes_to_device() * batch;
  const auto add = [&](std::uint64_t bytes) {
    memory.columns_offsets.push_back(memory.columns_bytes);
    memory.columns_bytes += round_up(bytes, kColumnAlign);
  };
  for (const DeliveredColumn& column : delivered_columns(info, options)) add(column.bytes);
  add(sizeof(std::int64_t) * batch);  // ids
  add(batch);                         // mask
  if (form->decoded_by_device()) memory.verdict_bytes = Verdict::size_bytes(batch);
  return memory;
}

std::uint64_t scratch_memory_bytes(const DatasetInfo& info, const DeviceInfo& device,
                                   const LoaderOptions& options) {
  const auto form = make_stored_form(info);
  if (decodes_once(info, options)) return form->transform_input().size_bytes() * options.batch_size;
  return form->scratch_bytes(options.transform, device) * options.batch_size;
}

std::uint64_t augment_memory_bytes(const DatasetInfo& info, const DeviceInfo& device,
                                   const LoaderOptions& options) {
  if (device.kind == DeviceKind::host) return 0;
  const std::vector<TransformWork> works = plan_views(info, options);
  std::uint64_t most = 0;
  for (std::size_t view = 0; view < works.size(); ++view) {
    const std::vector<Operation>& operations = view_options(options, view).operations;
    if (!operations.empty())
      most =
          std::max(most, augment_scratch_bytes(works[view].delivered, options.batch_size, mixes(operations)));
  }
  return most;
}

StagingMemory staging_memory(const DatasetInfo& info, const LoaderOptions& options,
                             std::uint64_t cache_bytes) {
  StagingMemory memory;
  memory.batch_bytes = make_stored_form(info)->most_bytes_to_device() * options.batch_size;
  memory.plan = staging_plan(memory.batch_bytes, options.prefetch, cache_bytes);
  if (memory.size_bytes() > options.pinned_bytes)
    throw Error(
        ErrorCode::resource,
        fmt::format("{} staging buffers for batches of {} samples need {} bytes of pinned memory; "
                    "pinned_bytes is {}: raise it, or lower prefetch or batch_size",
                    memory.plan.buffers, options.batch_size, memory.size_bytes(), options.pinned_bytes));
  return memory;
}

DirectMemory direct_memory(const DatasetInfo& info, const LoaderOptions& options, std::uint32_t alignment) {
  const std::uint64_t batch = options.batch_size;
  const auto form = make_stored_form(info);
  const std::uint64_t most = form->most_bytes_to_device();
  const std::uint64_t unit = std::max<std::uint64_t>(alignment, kPage);
  // Aligned if samples are whole blocks, because images start at a page.
  const bool aligned =
      form->decoded_by_host() || (form->fixed_size() && most % alignment == 0 && alignment <= kPage);
  const std::uint64_t pitch = aligned ? most : round_up(most, unit) + unit;
  if (pitch > kMaxDirectRead)
    throw Error(ErrorCode::unsupported,
                fmt::format("a sample of {} bytes is more than a direct read takes", most));
  const std::uint64_t all = pitch * batch * slots_of(options);
  if (all > options.pinned_bytes)
    throw Error(
        ErrorCode::resource,
        fmt::format("{} slots of {} samples need {} bytes of pinned memory; pinned_bytes is {}: raise "
                    "it, or lower prefetch or batch_size",
                    slots_of(options), batch, all, options.pinned_bytes));
  return {unit, pitch, pitch * batch + unit};
}

void check_mapped(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                  std::uint64_t budget_bytes) {
  if (make_stored_form(info)->decoded_by_host())
    throw Error(ErrorCode::unsupported,
                info.mixed_codecs ? std::string("samples stored with different codecs must be decoded first")
                                  : fmt::format("samples stored with codec {} must be decompressed first",
                                                to_string(info.codec)));
  if (!device.registers_read_only)
    throw Error(ErrorCode::unsupported, fmt::format("{} cannot register read-only mappings", device.name));
  if (device.reads_host_memory) return;
  std::uint64_t largest = 0;
  for (const ShardSummary& shard : info.shards) largest = std::max(largest, shard.size_bytes);
  if (largest > budget_bytes)
    throw Error(
        ErrorCode::resource,
        fmt::format(
            "a shard of {} bytes exceeds the budget of {} bytes for registered memory (registered_bytes)",
            largest, budget_bytes));
  const std::uint64_t total = shard_bytes(info);
  if (total > budget_bytes && options.order == OrderMode::shuffle)
    throw Error(
        ErrorCode::resource,
        fmt::format("{} bytes of shards exceed the budget of {} bytes for registered memory "
                    "(registered_bytes), and a global shuffle needs all of them at once; a windowed order "
                    "needs only its window",
                    total, budget_bytes));
}

std::uint64_t registered_budget_bytes(const LoaderOptions& options) {
  return options.registered_bytes != 0 ? options.registered_bytes : default_memory_budget_bytes();
}

ResidentMemory resident_memory(const DatasetInfo& info, const LoaderOptions& options, std::uint64_t samples,
                               std::uint64_t free_device_bytes) {
  // The other half is left to what is allocated later: models, and other processes.
  const std::uint64_t budget = options.resident_bytes != 0 ? options.resident_bytes : free_device_bytes / 2;
  const auto form = make_stored_form(info);
  const std::uint64_t sample = form->most_bytes_to_device();
  if (budget < sample)
    throw Error(
        ErrorCode::resource,
        fmt::format("resident_bytes is {}: not even one sample of {} bytes stays on the device; raise it, or "
                    "use another transport",
                    budget, sample));
  std::uint64_t all = samples * sample;
  if (form->fixed_size()) return {std::min(all, budget / sample * sample), all};
  all = std::min(all, shard_bytes(info));  // a shard is mostly samples
  return {std::min(all, budget), all};
}

}  // namespace shard
