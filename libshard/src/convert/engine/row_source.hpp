// RowSource: where the rows of a conversion come from. There are two: the inputs of a plan (plan_rows.cpp),
// and a program (Writer).
//
//   next_shard() -> reader.take() -> read() -> decode() -> [stored] -> release() -> take() -> ...
//
// Several shards are filled at once if the source allows it: writes to one file wait for each other.
//
// A source says which shard is next, which row, and what its sample is. All else is the engine's
// (scheduler.hpp, worker.cpp): threads, open shards, rejects, receipts, publishing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "convert/publish/input_table.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/jpeg_counts.hpp"
#include "shard/error.hpp"
#include "shard/image/memory_budget.hpp"
#include "shard/shard_writer.hpp"

namespace shard::convert {

struct ShardToFill {
  std::uint64_t number = 0;
  // At most: the source may end the shard earlier.
  std::uint64_t rows = 0;
  ShardWriterOptions options;
  // Of a shard that a complete data set has lost: what is made must be equal to it. Null: the shard is new.
  const ShardSummary* expected = nullptr;
};

// What is stored of a row.
struct RowSample {
  SampleValues image;
  // Of the image, before the codec.
  std::uint64_t image_bytes = 0;
  // With codec jpeg.
  std::optional<JpegUse> jpeg;
  std::vector<std::span<const std::byte>> columns;
  std::span<const SampleValues> fields;
  image::WarningSet warnings;
};

// One thread's access to the rows of a source.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // Row `row` of shard `shard`, the one after the row that was taken of it last: sets the key, and the size
  // if it is known. Waits for it. One thread at a time calls this and RowSource::next_shard(). False: no
  // further row is in this shard, or the run ends.
  virtual bool take(std::uint64_t shard, std::uint64_t row, InputRow& input) = 0;
  // Reads the row taken last and sets its size and digest. Returns the bytes that were read. An
  // invalid_argument says that the input has changed; it ends the run, as does a lack of resources.
  virtual std::uint64_t read(InputRow& input) = 0;
  // Sets all of `sample`, which is valid until release().
  virtual void decode(RowSample& sample) = 0;
  // Lets go of the row's memory.
  virtual void release() noexcept = 0;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // For one thread. Both arguments must outlive it.
  virtual std::unique_ptr<RowReader> reader(image::MemoryBudget& memory) = 0;
  // How many shards may be filled at once, at least 1. If it is more than 1, next_shard() does not wait.
  virtual std::size_t most_filling() const = 0;
  // Waits until it is known. Nothing: there are no more rows, or the run ends.
  virtual std::optional<ShardToFill> next_shard() = 0;
  // The shard is published. Called on the publisher's thread.
  virtual void published(std::uint64_t shard) = 0;
  // The run has failed: whoever waits in next_shard() or take() returns. Called on any thread.
  virtual void stop() noexcept = 0;
};

// Memory that is not there now may be there later. (What an image takes beyond a bound has the same code.) A
// conversion goes on, with the image as a reject that a later run names; who uses images as they come does
// not take it for one that cannot be used.
bool lacks_memory(const Error& error);
// Whether the run ends with this error of a row, which was read or could not be. If not, the row is a reject.
bool ends_run(const Error& error, bool was_read);

// Reads, decodes, stores and publishes all rows of a source on options.threads() threads. Adds to `summary`.
// Errors: cancelled (hooks.cancel), the first one of a row that ends the run, io.
void convert_rows(RowSource& source, const Options& options, const PlanRecord& record, const Hooks& hooks,
                  Summary& summary);

}  // namespace shard::convert
