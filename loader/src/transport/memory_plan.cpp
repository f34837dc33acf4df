#include "transport/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/bytes.hpp"
#include "base/system/system_memory.hpp"
#include "codec/stored_form.hpp"
#include "fields/delivered_columns.hpp"
#include "fields/fields.hpp"
#include "fields/views.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"
#include "slot/verdict.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kColumnAlign = 256;
constexpr std::uint64_t kPage = 4096;
// Of a thread that reads files: all of them stay in the caches. The copy engine rests for 2 to 8 us between
// two copies, so small ones cost: 3 of 1 MiB / 2 of 2 MiB / 2 of 4 MiB gave 221,000 / 261,000 / 243,000
// photographs/s from a folder (H100, 15 threads, 16 batches ahead).
constexpr std::uint64_t kChunkBytes = std::uint64_t{2} << 20U;
constexpr std::uint64_t kChunks = 2;

std::uint64_t slots_of(const LoaderOptions& options) { return std::uint64_t{options.prefetch} + 1; }

// The device reads samples where they are mapped.
bool reads_in_place(const DeviceInfo& device, const LoaderOptions& options, TransportKind link) {
  return link == TransportKind::mapped && device.reads_host_memory &&
         options.transport != TransportKind::resident;
}

}  // namespace

std::uint64_t shard_bytes(const DatasetInfo& info) {
  std::uint64_t total = 0;
  for (const ShardSummary& shard : info.shards) total += shard.size_bytes;
  return total;
}

std::uint64_t parts_bytes(std::span<const std::shared_ptr<const StoredForm>> forms,
                          const LoaderOptions& options) {
  std::uint64_t bytes = 0;
  for (const auto& form : forms) bytes = round_up(bytes, kPartAlign) + form->room_bytes(options);
  return bytes;
}

SlotMemory slot_memory(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                       TransportKind link) {
  const std::uint64_t batch = options.most_rows();
  const StoredForms forms = stored_forms(info, options);
  SlotMemory memory;
  const std::vector<TransformWork> works = plan_views(info, options);
  for (std::size_t view = 0; view < works.size(); ++view) {
    memory.images_offsets.push_back(round_up(memory.images_bytes, kColumnAlign));
    std::uint64_t most = 0;
    for_each_size(works[view], view_options(options, view), options,
                  [&](const SampleSpec& delivered, std::uint64_t rows) {
                    most = std::max(most, delivered.size_bytes() * rows);
                  });
    memory.images_bytes = memory.images_offsets.back() + most;
  }
  for (const DeliveredField& field : delivered_fields(info, options))
    for (const FieldView& view : field.views) {
      memory.fields_offsets.push_back(round_up(memory.images_bytes, kColumnAlign));
      memory.images_bytes = memory.fields_offsets.back() + view.delivered_bytes;
    }
  const bool in_place = reads_in_place(device, options, link);
  const std::size_t first = delivers_stored(info, options) ? 1 : 0;
  if (!in_place) memory.raw_bytes = parts_bytes(std::span(forms).subspan(first), options);
  const auto add = [&](std::uint64_t bytes) {
    memory.columns_offsets.push_back(memory.columns_bytes);
    memory.columns_bytes += round_up(bytes, kColumnAlign);
  };
  for (const DeliveredColumn& column : delivered_columns(info, options)) add(column.bytes);
  add(sizeof(std::int64_t) * batch);  // ids
  add(batch);                         // mask
  if (std::any_of(forms.begin(), forms.end(), [](const auto& form) { return form->decoded_by_device(); }))
    memory.verdict_bytes = Verdict::size_bytes(batch, forms.size());
  return memory;
}

namespace {

// How frames are divided among streams. With one for copies and one for transforms there are eight, for which
// CUDA has queues of their own by default (CUDA_DEVICE_MAX_CONNECTIONS). Streams that share a queue wait for
// each other.
struct Streams {
  std::uint64_t group_rows;  // enough to fill a GPU together with the other streams
  std::uint64_t decoders;
};
constexpr Streams kOfFrames{128, 6};
// Of an index a lane makes the part for 1 kB of a file alone, which takes four times as long as a group's
// decoding, however few files there are.
constexpr Streams kOfFiles{256, 6};

// Of a random-resized crop only the box is decoded, whose columns are rounded to pieces of 8 MCUs: 0.53 of
// the whole on average, with 240 photographs and torchvision's bounds. What needs more takes a group or a
// band more.
double decoded_share(const LoaderOptions& options) {
  const TransformOptions& view = options.transform;
  if (!options.further_views.empty() || view.crop != CropKind::random_resized) return 1;
  return std::min(1.0, (view.scale[0] + view.scale[1]) / 2 + 0.1);
}

std::uint64_t groups_of_batch(const LoaderOptions& options, const Streams& streams) {
  return (options.most_rows() + streams.group_rows - 1) / streams.group_rows;
}

const Streams& streams_of(const StoredForm::Workspace& needed) {
  return needed.least_index_bytes != 0 ? kOfFiles : kOfFrames;
}

// Batches that are decoded at once, and one whose views are made: no more than run ahead.
std::uint64_t rooms_to_decode(const LoaderOptions& options, const Streams& streams) {
  const std::uint64_t groups = groups_of_batch(options, streams);
  return std::min<std::uint64_t>(options.prefetch, (streams.decoders + groups - 1) / groups + 1);
}

DecoderMemory decoder_memory(const StoredForms& forms, const DeviceInfo& device,
                             const LoaderOptions& options) {
  StoredForm::Workspace most;
  for (const auto& form : forms) {
    const StoredForm::Workspace needed = form->workspace(options, device);
    most.usual_bytes = std::max(most.usual_bytes, needed.usual_bytes);
    most.least_bytes = std::max(most.least_bytes, needed.least_bytes);
    most.usual_index_bytes = std::max(most.usual_index_bytes, needed.usual_index_bytes);
    most.least_index_bytes = std::max(most.least_index_bytes, needed.least_index_bytes);
  }
  if (most.least_bytes == 0) return {};
  const Streams& streams = streams_of(most);
  const std::uint64_t groups = groups_of_batch(options, streams);
  const std::uint64_t rooms = rooms_to_decode(options, streams);
  DecoderMemory memory;
  memory.group_rows = (options.most_rows() + groups - 1) / groups;
  memory.decoders = std::min({groups * rooms, 2 * rooms, streams.decoders});
  memory.workspace_bytes =
      round_up(std::max(static_cast<std::uint64_t>(decoded_share(options) *
                                                   static_cast<double>(most.usual_bytes * memory.group_rows)),
                        most.least_bytes),
               kPartAlign);
  memory.index_bytes =
      round_up(std::max(most.usual_index_bytes * memory.group_rows, most.least_index_bytes), kPartAlign);
  return memory;
}

// What operations take, and lanes.
void plan_augment(const DatasetInfo& info, const LoaderOptions& options, ComputeMemory& memory) {
  const std::vector<TransformWork> works = plan_views(info, options);
  for (std::size_t view = 0; view < works.size(); ++view) {
    const std::vector<Operation>& operations = view_options(options, view).operations;
    if (operations.empty()) continue;
    for_each_size(works[view], view_options(options, view), options,
                  [&](const SampleSpec& delivered, std::uint64_t rows) {
                    memory.augment_bytes = std::max(
                        memory.augment_bytes, augment_scratch_bytes(delivered, rows, mixes(operations)));
                  });
  }
  // Resident samples are copied in one batch and read in others, in the order of one stream.
  if (memory.augment_bytes > 0 && options.transport != TransportKind::resident) memory.lanes = 2;
}

}  // namespace

ComputeMemory compute_memory(const DatasetInfo& info, const DeviceInfo& device,
                             const LoaderOptions& options) {
  const StoredForms forms = stored_forms(info, options);
  const auto& form = forms.front();
  ComputeMemory memory;
  const std::size_t views = view_count(options);
  bool decodes = form->decodes_first(views, device);
  for (std::size_t view = 0; view < views; ++view)
    decodes = decodes || form->needs_scratch(view_options(options, view), device);
  if (decodes) memory.decoded_bytes = form->decoded_room_bytes(options);
  memory.decoder = decoder_memory(forms, device, options);
  memory.field_bytes = field_memory(info, options).size_bytes();
  if (device.kind != DeviceKind::host) plan_augment(info, options, memory);
  const StoredForm::Workspace needed = form->workspace(options, device);
  memory.rooms = needed.least_bytes != 0 ? rooms_to_decode(options, streams_of(needed)) : memory.lanes;
  return memory;
}

std::uint64_t LateMemory::group_size_bytes() const noexcept {
  return std::accumulate(group_bytes.begin(), group_bytes.end(), std::uint64_t{0});
}

LateMemory late_memory(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                       TransportKind link) {
  const StoredForms forms = stored_forms(info, options);
  const auto& form = forms.front();
  if (!form->may_be_late() || reads_in_place(device, options, link)) return {};
  const std::uint64_t rows = options.most_rows();
  const std::uint64_t decoded = round_up(form->most_decoded(), TransformWork::kUnpackedAlign);
  bool fits = !form->decoded_by_device() || form->decodes_in_parts() ||
              form->decoded_room_bytes(options) >= decoded * rows;
  LateMemory memory;
  for (const auto& part : forms) {
    memory.group_bytes.push_back(part->may_be_late() ? part->late_group_bytes(options) : 0);
    if (part->may_be_late()) fits = fits && part->room_bytes(options) >= part->most_bytes_to_device() * rows;
  }
  if (fits) return {};
  memory.decoded_bytes = form->decoded_room_bytes(options);
  if (memory.size_bytes() > options.memory.pinned_bytes)
    throw Error(
        ErrorCode::resource,
        fmt::format("{} groups of samples, of which the largest has {} bytes, need {} bytes of pinned "
                    "memory; pinned_bytes is {}: raise it",
                    kLateGroups, form->most_bytes_to_device(), memory.size_bytes(),
                    options.memory.pinned_bytes));
  return memory;
}

namespace {

// What a slot holds.
std::string batches_text(const LoaderOptions& options) {
  const std::uint64_t rows = options.most_rows();
  if (options.together < 2) return fmt::format("batches of {} samples", rows);
  return fmt::format("{} samples (together={} batches of {})", rows, options.together,
                     rows / options.together);
}

std::string_view lower_text(const LoaderOptions& options) {
  return options.together < 2 ? "prefetch or batch_size" : "together, prefetch or batch_size";
}

}  // namespace

StagingMemory staging_memory(const DatasetInfo& info, const LoaderOptions& options,
                             std::uint64_t cache_bytes) {
  StagingMemory memory;
  memory.batch_bytes = parts_bytes(stored_forms(info, options), options);
  memory.plan = staging_plan(memory.batch_bytes, options.prefetch, cache_bytes);
  // Batches of samples of any size are as large as was thought useful (MemoryOptions::batch_bytes).
  constexpr std::uint64_t kFewest = 2;
  const std::uint64_t fit = options.memory.pinned_bytes / std::max<std::uint64_t>(memory.batch_bytes, 1);
  if (make_stored_form(info)->may_be_late() && fit >= kFewest && fit < memory.plan.buffers)
    memory.plan.buffers = fit;
  if (memory.size_bytes() > options.memory.pinned_bytes)
    throw Error(ErrorCode::resource,
                fmt::format("{} staging buffers for {} need {} bytes of pinned memory; "
                            "pinned_bytes is {}: raise it, or lower {}",
                            memory.plan.buffers, batches_text(options), memory.size_bytes(),
                            options.memory.pinned_bytes, lower_text(options)));
  if (!info.unindexed_files) return memory;
  memory.chunks = {options.threads, kChunks, kChunkBytes};
  if (memory.size_bytes() > options.memory.pinned_bytes) memory.chunks = {};
  return memory;
}

DirectMemory direct_memory(const DatasetInfo& info, const LoaderOptions& options, std::uint32_t alignment) {
  const std::uint64_t batch = options.most_rows();
  DirectMemory memory;
  const std::uint64_t unit = memory.unit_bytes = std::max<std::uint64_t>(alignment, kPage);
  std::uint64_t rows = 0;
  for (const auto& form : stored_forms(info, options)) {
    const std::uint64_t most = form->most_bytes_to_device();
    // Aligned if samples are whole blocks, because images start at a page.
    const bool aligned =
        !form->decoded_by_host() && form->fixed_size() && most % alignment == 0 && alignment <= kPage;
    // Of samples that are decoded here only the result is in the row.
    const std::uint64_t decoded = options.fields.empty() ? most : round_up(most, unit);
    const std::uint64_t pitch = aligned                   ? most
                                : form->decoded_by_host() ? decoded
                                                          : round_up(most, unit) + unit;
    if (pitch > kMaxDirectRead)
      throw Error(ErrorCode::unsupported,
                  fmt::format("a sample of {} bytes is more than a direct read takes", most));
    memory.pitch_bytes.push_back(pitch);
    rows += form->may_be_late() ? form->room_bytes(options) + 2 * unit * batch : pitch * batch;
  }
  const std::uint64_t all = rows * slots_of(options);
  if (all > options.memory.pinned_bytes)
    throw Error(
        ErrorCode::resource,
        fmt::format(
            "{} slots for {} need {} bytes of pinned memory; pinned_bytes is {}: raise it, or lower {}",
            slots_of(options), batches_text(options), all, options.memory.pinned_bytes, lower_text(options)));
  memory.slot_bytes = rows + unit;
  return memory;
}

void check_mapped(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                  std::uint64_t budget_bytes) {
  const StoredForms forms = stored_forms(info, options);
  const auto decoded =
      std::find_if(forms.begin(), forms.end(), [](const auto& form) { return form->decoded_by_host(); });
  // Asked for, it gets what to do; as a reason against it, it needs none.
  const auto refuse = [&](const std::string& why) {
    const bool asked = options.transport == TransportKind::mapped;
    throw Error(ErrorCode::unsupported,
                asked ? fmt::format("transport mapped: {}: use auto or staged", why) : why);
  };
  if (decoded != forms.end() && decoded != forms.begin())
    refuse(fmt::format("samples of the further field {} must be decompressed first",
                       std::next(options.fields.begin(), decoded - forms.begin() - 1)->first));
  if (decoded != forms.end())
    refuse(info.mixed_codecs ? std::string("samples stored with different codecs must be decoded first")
                             : fmt::format("samples stored with codec {} must be decompressed first",
                                           to_string(info.codec)));
  if (!device.registers_read_only) refuse(fmt::format("{} cannot register read-only mappings", device.name));
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
  return options.memory.registered_bytes != 0 ? options.memory.registered_bytes
                                              : default_memory_budget_bytes();
}

ResidentMemory resident_memory(const DatasetInfo& info, const LoaderOptions& options, std::uint64_t samples,
                               std::uint64_t free_device_bytes) {
  // The other half is left to what is allocated later: models, and other processes.
  const std::uint64_t budget =
      options.memory.resident_bytes != 0 ? options.memory.resident_bytes : free_device_bytes / 2;
  const StoredForms forms = stored_forms(info, options);
  std::uint64_t sample = 0;
  std::uint64_t usual = 0;
  bool fixed_size = true;
  // Frames of codec packed are read 16 bytes at a time, and samples of another field may lie before them.
  const std::uint64_t alignment = forms.size() > 1 ? 16 : 1;
  for (const auto& form : forms) {
    sample += round_up(form->most_bytes_to_device(), alignment);
    usual += round_up(form->usual_bytes_to_device(), alignment);
    fixed_size = fixed_size && form->fixed_size();
  }
  if (budget < usual)
    throw Error(
        ErrorCode::resource,
        fmt::format("resident_bytes is {}: not even one sample of {} bytes stays on the device; raise it, or "
                    "use another transport",
                    budget, usual));
  std::uint64_t all = samples * sample;
  if (fixed_size) return {std::min(all, budget / sample * sample), alignment, all};
  const std::uint64_t gaps = (alignment - 1) * forms.size() * samples;
  all = std::min(all, shard_bytes(info) + gaps);  // a shard is mostly samples
  return {std::min(all, budget), alignment, all};
}

}  // namespace shard
