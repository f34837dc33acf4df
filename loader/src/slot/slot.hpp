// Slot: the memory of one batch, or of some that are made as one (LoaderOptions::together), and what
// feeder, transport and consumer must know of it. ring.hpp states who may use it when. What only one of them
// needs it keeps itself, by Slot::number.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "shard/loader/loader.hpp"
#include "slot/verdict.hpp"

namespace shard {

// A stored sample of a field that the batch needs. It is copied to device memory or, if `target` is null,
// read by the device where it is in host memory.
struct FetchItem {
  // Index in the data set.
  std::uint64_t sample = 0;
  // Of which field: 0 is the images, the others are those of stored_forms() (fields.hpp).
  std::uint32_t part = 0;
  Dataset::Location at;
  std::byte* target = nullptr;
  // The bytes that go to the device.
  std::uint64_t size_bytes = 0;
  // The bytes of the items before it in the batch.
  std::uint64_t offset = 0;
  // True for the first item of its shard in the batch.
  bool first_of_shard = false;
  // StoredSample::mapped.
  const std::byte* mapped = nullptr;
  // StoredSample::is_file.
  bool is_file = false;
};

// A column of the batch, in C order: the same rows in host memory and on the device.
struct SlotColumn {
  std::string name;
  // The view that it belongs to, if views have their own.
  std::size_t view = 0;
  DType dtype = DType::i64;
  // [rows of the batch, ...]
  std::vector<std::uint64_t> shape;
  const std::byte* host = nullptr;
  const std::byte* device = nullptr;
};

struct Slot {
  // 0 to slots - 1: its index in the ring.
  std::size_t number = 0;

  // Device: the delivered batch, view after view, then each further field likewise.
  // Where each begins: 256-byte aligned.
  std::unique_ptr<Block> images;
  std::vector<std::uint64_t> images_offsets;
  // Columns, ids and mask, one after the other, each 256-aligned: in pinned memory, and on the device.
  std::unique_ptr<Block> columns_host;
  std::unique_ptr<Block> columns_device;
  // Copies all of them to the device.
  CopyItem columns_copy;
  // Where each is: the columns as in delivered_columns(), then ids (int64), then mask (bool).
  std::vector<SlotColumn> columns;
  SlotColumn ids;
  SlotColumn mask;
  // Further image fields, in the order of delivered_fields(), each with all of its views. On the device only.
  std::vector<SlotColumn> fields;
  // Null unless the device decodes samples.
  std::unique_ptr<Verdict> verdict;

  // The batch that is in the slot, or is being made in it; of several the first. They are neighbours.
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  // How many are in it.
  std::size_t batches = 1;
  // The row after the last one of each.
  std::vector<std::size_t> ends;
  std::size_t first_row(std::size_t batch) const { return batch == 0 ? 0 : ends[batch - 1]; }
  // Where its samples are stored.
  std::vector<Dataset::Location> locations;
  // The samples that are not on the device yet. With `verify` they are compared with their checksums first.
  std::vector<FetchItem> fetch;
  bool verify = false;
  // The batch is made a second time: some of its samples were files that the device cannot decode.
  bool again = false;
  // For the consumer. Until the batch is copied these are the indices of the slot's last batch, which may
  // still be read.
  BatchIndices indices;

  // True once nobody will read the batch, which is then not made to the end. Each batch has its own.
  // The ring guards both.
  std::shared_ptr<std::atomic<bool>> unwanted;
  bool lent = false;
  // Of its batches, and of the error behind them: how many were handed out, and how many of these came back.
  // The ring guards both.
  std::size_t handed_out = 0;
  std::size_t given_back = 0;
  // The run of the ring in which it was lent last. The ring guards it.
  std::uint64_t run = 0;

  // What is mixed (LoaderOptions::mix): half as many as samples.
  std::vector<MixPair> pairs;

  // Samples of any size: the stored rows and columns of each.
  std::vector<SampleSize> shapes;
  // A delivered sample of each view, in this batch.
  std::vector<SampleSpec> delivered;
  // Of each view: BatchView::tokens.
  std::vector<std::vector<std::uint32_t>> tokens;

  // Recorded by the transport: the samples are on the device.
  Event copied_event;
  // The batch can be read.
  Event ready_event;
  // The work of consumers that reads the slot's last batch.
  std::vector<Event> released;
  // The same of the batch that is lent. The ring guards it.
  std::vector<Event> readers;
  // Of several batches that are lent, and of streams that nobody can destroy (StreamRef::is_default): those
  // that wait for ready_event already, and those whose work reads batches that came back. An event is
  // recorded in the latter once all are back: to wait and to record for each batch takes the driver longer
  // than to copy a small one. The ring guards both.
  std::vector<StreamRef> waiting;
  std::vector<StreamRef> reading;
  // The batch after `batches` could not be made. The slot holds those before it.
  std::exception_ptr error;

  // What the ring hands out in turn: the batches, and the error.
  std::size_t parts() const noexcept { return batches + (error ? 1 : 0); }
};

}  // namespace shard
