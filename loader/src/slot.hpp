// Slot: the memory of one batch, and what its feeder, its transport and its consumer say to each other about it.
// Who may touch it when: ring.hpp.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "shard/loader/loader.hpp"
#include "verdict.hpp"

namespace shard {

// A stored sample to be brought: to device memory, or (target null) only to be pointed at, where the device
// reads host memory.
struct FetchItem {
  std::uint64_t sample = 0;  // data set index
  Dataset::Location at;
  std::byte* target = nullptr;
  std::uint64_t size_bytes = 0;  // that go to the device
  std::uint64_t offset = 0;      // in the batch: of the items before it
  bool first_of_shard = false;   // no item before it in the batch lies in the same shard
  // StoredSample::mapped.
  const std::byte* mapped = nullptr;
};

struct Slot {
  std::size_t number = 0;                 // its place in the ring
  std::unique_ptr<Block> images;          // device: delivered batch
  std::unique_ptr<Block> raw;             // device: stored batch before the transform; none where not needed
  std::unique_ptr<Verdict> verdict;       // where the device decodes samples
  std::unique_ptr<Block> columns_host;    // pinned: columns, ids and mask, one after the other, 256-aligned
  std::unique_ptr<Block> columns_device;  // the same on the device
  std::vector<ColumnView> columns;        // of the data set
  ColumnView ids;                         // int64; of `indices`, as columns
  ColumnView mask;                        // bool
  CopyItem columns_copy;                  // all of these, host to device
  std::vector<Dataset::Location> locations;  // of the batch's samples
  std::vector<SampleView> views;
  std::vector<FetchItem> fetch;
  std::vector<const std::byte*> device_sources;  // where each sample lies on the device, before the transform
  std::vector<std::uint64_t> sizes;              // of each sample, in bytes that go to the device
  bool verify = false;      // checksums are held against the samples before they are handed out
  BatchIndices indices;     // of the batch that is being made
  BatchIndices handed_out;  // the same for the consumer, whose work may read the last batch's until then
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  Event copied_event;  // by the transport: samples are on the device
  Event ready_event;
  std::vector<Event> released;  // the work of consumers that reads the slot's last batch
  std::exception_ptr error;     // the batch could not be made; the slot holds nothing
};

}  // namespace shard
