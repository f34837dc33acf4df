// The size of every buffer of a loader, as a pure function of data set, device, options and machine. The
// loader and its transports allocate by it, and plan_memory() (shard/loader/memory.hpp) reports it.
//
//   device   slots x (images and fields + raw + columns) + scratch + resident
//   pinned   slots x (columns + verdict) + staging
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/stored_form.hpp"
#include "shard/loader/memory.hpp"
#include "transport/staging_plan.hpp"

namespace shard {

// Bytes of all shards.
std::uint64_t shard_bytes(const DatasetInfo& info);

// The samples of each field of a batch begin at a multiple of this many bytes,
// in staging memory and on the device.
inline constexpr std::uint64_t kPartAlign = 256;
// The bytes of a batch's samples of these fields, one field after the other, before they are delivered.
std::uint64_t parts_bytes(std::span<const std::shared_ptr<const StoredForm>> forms,
                          const LoaderOptions& options);

// The samples of a batch for which there is no room in its blocks (StoredForm::room_bytes()): they are made
// after the others, in groups, with their further fields that have sizes of their own. The host stages one
// group while the device makes the one before.
struct LateMemory {
  // By part (FetchItem::part), pinned and on the device: of a group. A field of one size has 0. Empty: there
  // is always room.
  std::vector<std::uint64_t> group_bytes;
  std::uint64_t decoded_bytes = 0;  // of the images of a group, at most; not memory of its own
  std::uint64_t group_size_bytes() const noexcept;
  std::uint64_t size_bytes() const noexcept { return kLateGroups * group_size_bytes(); }
};
// Errors: resource (it exceeds LoaderOptions::pinned_bytes).
LateMemory late_memory(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                       TransportKind link);

// What each slot of the ring has, whatever the transport.
struct SlotMemory {
  std::uint64_t images_bytes = 0;              // device: the delivered batch, of all views, and the fields
  std::vector<std::uint64_t> images_offsets;   // of each view
  std::vector<std::uint64_t> fields_offsets;   // of each field, view by view
  std::uint64_t raw_bytes = 0;                 // device: the stored batch; 0 if nothing reads a copy
  std::uint64_t columns_bytes = 0;             // on the device, and as much pinned
  std::vector<std::uint64_t> columns_offsets;  // as delivered_columns(), then ids, then mask
  std::uint64_t verdict_bytes = 0;  // pinned: which samples the device found invalid; 0 if the host decodes
};
// `link`: how samples reach the device (mapped, staged or direct).
SlotMemory slot_memory(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                       TransportKind link);
// What a FrameDecoder has (engine/frame_decoder.hpp). None: no codec needs it on this device.
struct DecoderMemory {
  // Streams, each of which makes the indices of a group of frames, if they have none, and decodes it.
  std::uint64_t decoders = 0;
  std::uint64_t group_rows = 0;  // at most
  // Of each: TransformWork::workspace, and JpegIndexWork::workspace.
  std::uint64_t workspace_bytes = 0;
  std::uint64_t index_bytes = 0;
  std::uint64_t size_bytes() const noexcept { return decoders * (workspace_bytes + index_bytes); }
};

// Device memory that the work on a batch needs beside its slot.
struct ComputeMemory {
  // Batches that the device works on at once: two with operations on a GPU, where a block executes the
  // program of a sample. When the last programs of a batch end, those of the next one have begun (H200, two
  // views with blur: 362,499 views/s, 274,602 with one lane).
  std::uint64_t lanes = 1;
  // Rooms in which samples are decoded: one for each lane, or with a FrameDecoder as many as keep it busy.
  std::uint64_t rooms = 1;
  std::uint64_t decoded_bytes = 0;  // of each room; 0: none is needed
  // Of each lane.
  std::uint64_t augment_bytes = 0;  // in which operations are executed; 0: none is needed
  std::uint64_t field_bytes = 0;    // FieldMemory
  // Of all lanes.
  DecoderMemory decoder;
  std::uint64_t size_bytes() const noexcept {
    return rooms * decoded_bytes + lanes * (augment_bytes + field_bytes) + decoder.size_bytes();
  }
};
ComputeMemory compute_memory(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options);

// FileChunks, for files that the device decodes as they are.
struct ChunkMemory {
  std::uint64_t threads = 0;
  std::uint64_t of_each = 0;  // chunks
  std::uint64_t chunk_bytes = 0;
  std::uint64_t size_bytes() const noexcept { return threads * of_each * chunk_bytes; }
};

// The staging buffers of transport staged, and of mapped until all shards are registered.
struct StagingMemory {
  std::uint64_t batch_bytes = 0;  // of one buffer
  StagingPlan plan;
  ChunkMemory chunks;  // none: files are read into the buffers, too
  std::uint64_t size_bytes() const noexcept { return batch_bytes * plan.buffers + chunks.size_bytes(); }
};
// `cache_bytes`: of the last cache. Errors: resource (it exceeds LoaderOptions::pinned_bytes).
StagingMemory staging_memory(const DatasetInfo& info, const LoaderOptions& options,
                             std::uint64_t cache_bytes);

// The pinned memory of transport direct, in each slot.
struct DirectMemory {
  std::uint64_t unit_bytes = 0;  // memory and reads of compressed frames are multiples of it
  // By part (FetchItem::part). From row to row: a sample, or the aligned range around it. Of samples of
  // any size: at most.
  std::vector<std::uint64_t> pitch_bytes;
  std::uint64_t slot_bytes = 0;
};
// `alignment`: of reads, in bytes. Errors: resource (it exceeds LoaderOptions::pinned_bytes), unsupported (a
// sample is larger than a direct read).
inline constexpr std::uint64_t kMaxDirectRead = std::uint64_t{1} << 30U;
DirectMemory direct_memory(const DatasetInfo& info, const LoaderOptions& options, std::uint32_t alignment);

// Throws if transport mapped is not possible, as far as this is known without trying. `budget_bytes`: of
// registered memory. Errors: unsupported, resource.
void check_mapped(const DatasetInfo& info, const DeviceInfo& device, const LoaderOptions& options,
                  std::uint64_t budget_bytes);
// LoaderOptions::registered_bytes, or by default what the machine allows at this moment.
std::uint64_t registered_budget_bytes(const LoaderOptions& options);

// Device memory of transport resident.
struct ResidentMemory {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t alignment = 1;  // of each sample of a field
  std::uint64_t all_bytes = 0;  // enough for every sample of the rank
};
// `samples`: the number that the rank reads. `free_device_bytes`: what the ring leaves. Errors: resource (not
// even one sample fits).
ResidentMemory resident_memory(const DatasetInfo& info, const LoaderOptions& options, std::uint64_t samples,
                               std::uint64_t free_device_bytes);

}  // namespace shard
