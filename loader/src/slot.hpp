// Slot: the memory of one batch, and what its feeder, its transport and its consumer say to each other about it.
// Who may touch it when: ring.hpp. What only one of them needs it keeps itself, by Slot::number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "shard/loader/loader.hpp"
#include "verdict.hpp"

namespace shard {

// A stored sample to be brought: to device memory, or (target null) only to be pointed at, where the device
// reads host memory.
struct FetchItem {
  // Index in the data set.
  std::uint64_t sample = 0;
  Dataset::Location at;
  std::byte* target = nullptr;
  // That go to the device.
  std::uint64_t size_bytes = 0;
  // In the batch: the bytes of the items before it.
  std::uint64_t offset = 0;
  // No item before it in the batch lies in the same shard.
  bool first_of_shard = false;
  // StoredSample::mapped.
  const std::byte* mapped = nullptr;
};

// A column of the batch, in C order: the same rows in host memory and on the device.
struct SlotColumn {
  std::string name;
  DType dtype = DType::i64;
  // [rows of the batch, ...]
  std::vector<std::uint64_t> shape;
  const std::byte* host = nullptr;
  const std::byte* device = nullptr;
};

struct Slot {
  // Its place in the ring.
  std::size_t number = 0;

  // Device: the delivered batch.
  std::unique_ptr<Block> images;
  // Pinned: columns, ids and mask, one after the other, 256-aligned; and the same on the device.
  std::unique_ptr<Block> columns_host;
  std::unique_ptr<Block> columns_device;
  // All of these, host to device.
  CopyItem columns_copy;
  // Views of them: those of the data set, int64 ids, bool mask.
  std::vector<SlotColumn> columns;
  SlotColumn ids;
  SlotColumn mask;
  // Null unless the device decodes samples.
  std::unique_ptr<Verdict> verdict;

  // The batch that is in the slot, or is being made in it.
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  // Where its samples are stored.
  std::vector<Dataset::Location> locations;
  // Those that are not on the device yet; with `verify` they are compared with their checksums first.
  std::vector<FetchItem> fetch;
  bool verify = false;
  // For the consumer: those of the batch before, whose readers may not be done, until the batch is copied.
  BatchIndices indices;

  // By the transport: the samples are on the device.
  Event copied_event;
  // The batch can be read.
  Event ready_event;
  // The work of consumers that reads the slot's last batch.
  std::vector<Event> released;
  // The batch could not be made; the slot holds nothing.
  std::exception_ptr error;
};

}  // namespace shard
