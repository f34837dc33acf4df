// What transports do with one sample on the host: find it, stage it, compare it with its checksum.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <vector>

#include "codec/stored_form.hpp"
#include "slot/slot.hpp"

namespace shard {

// Where the sample is mapped, as it is stored.
std::span<const std::byte> mapped_bytes(const Dataset& dataset, const StoredForm& form,
                                        const FetchItem& item);

// Writes a stored sample to `target` in pinned memory (item.size_bytes), in the form that goes to the device.
// `verify`: compares it with its checksum. `cached`: uses stores that stay in the cache. For the first item
// of its shard in a batch, it checks the size of the shard's file. Errors name shard and sample.
void stage_row(const Dataset& dataset, const StoredForm& form, const FetchItem& item, std::byte* target,
               bool verify, bool cached = false);

// True if the pool's threads are done with the work of `filled`. Waits for that, at most `time`.
bool wait_filled(const std::future<void>& filled, std::chrono::microseconds time);

// Queues the copies after the slot's release, and records slot.copied_event.
void queue_copies(Stream& stream, Slot& slot, std::span<const CopyItem> copies);
// One copy for rows that follow each other in both memories.
void add_copy(std::vector<CopyItem>& copies, const CopyItem& row);
// Appends copies of the samples of slot.fetch. source(row) is the sample in pinned memory, or null: it is not
// copied here.
void add_rows(std::vector<CopyItem>& copies, const Slot& slot,
              const std::function<const std::byte*(std::size_t row)>& source);
// Queues copies of these samples alone. `scratch` is overwritten.
void copy_rows(Stream& stream, Slot& slot, std::vector<CopyItem>& scratch,
               const std::function<const std::byte*(std::size_t row)>& source);

}  // namespace shard
