// Writer::Impl: the source of the rows that a program hands over (row_source.hpp).
//
//   add() -> [check] -> queue, bounded by rows and bytes -> take() on the engine's threads
//
// One thread runs the engine (convert_rows()), from the first row on. One mutex guards what it shares with
// the threads of the program.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "convert/engine/row_source.hpp"
#include "convert/engine/writer_journal.hpp"
#include "convert/plan/key_set.hpp"
#include "convert/plan/small_images.hpp"
#include "convert/publish/folder_lock.hpp"
#include "shard/convert/writer.hpp"

namespace shard::convert {

// Of all that a row holds in memory.
std::uint64_t bytes_of(const WriterRow& row);

// writer_folder.cpp: where it writes. writer_check.cpp: which rows it takes. writer.cpp: add(), and the calls
// of the program. writer_rows.cpp: what the engine asks for. writer_close.cpp: how it ends.
struct Writer::Impl final : RowSource {
  explicit Impl(const WriterOptions& given);
  ~Impl() override;

  void open_folder();
  void open_replacement();
  void resume_or_clear(const PlanRecord& there);
  void continue_finished();
  void continue_with(const PlanRecord& there);
  void take_columns(const std::vector<ColumnSpec>& columns);
  void declare(std::vector<ColumnSpec> columns);

  void require_own_process() const;
  void check(const WriterRow& row) const;
  void check_columns_of(const WriterRow& row) const;
  // Of one of the further images, as it is stored.
  image::Size size_of_image(const WriterRow& row, std::size_t field) const;
  std::uint64_t head_bytes_of(const WriterRow& row, const std::string& key) const;

  void start();
  void run_engine() noexcept;
  void end(std::exception_ptr failed) noexcept;
  void throw_if_failed() const;
  std::optional<bool> try_add(WriterRow& row, std::chrono::milliseconds patience);
  void cancel() noexcept;

  std::unique_ptr<RowReader> reader(image::MemoryBudget& budget) override;
  // Which shard a row is in depends on those before it.
  std::size_t most_filling() const override { return 1; }
  std::optional<ShardToFill> next_shard() override;
  void published(std::uint64_t) override {}
  void stop() noexcept override;
  bool wait_for_row(std::unique_lock<std::mutex>& lock);
  // Sets `look` if its size is to be looked at.
  bool take(WriterRow& row, bool& look);

  Summary close();
  Summary finish(std::unique_lock<std::mutex>& lock);
  Summary publish_all(std::uint64_t rows);

  class Reader;

  // A call that may wait, so that the destructor waits for it. Made and destroyed with mutex held.
  class Guest {
   public:
    explicit Guest(Impl& of) : of_(of) { ++of_.guests; }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;
    ~Guest() {
      if (--of_.guests == 0) of_.no_guests.notify_all();
    }

   private:
    Impl& of_;
  };

  const pid_t process = ::getpid();
  WriterOptions options;            // `out` is where shards are written
  const std::filesystem::path out;  // as it was given
  bool replaces = false;  // options.out is a folder inside `out`, whose data set it replaces in the end
  FolderLock folder;
  FolderLock staging;

  // Set before the engine starts.
  bool declared = false;
  bool complete = false;  // options.out held the finished data set
  DatasetSpec spec;
  PlanRecord record;
  std::uint64_t per_shard = 0;
  std::uint64_t head_row =
      0;  // bytes of each row in the head of a shard, without key and what is not of fixed size
  std::uint64_t rows_before = 0;  // of earlier runs

  mutable std::mutex mutex;  // guards all below
  std::condition_variable has_rows;
  std::condition_variable has_room;  // or a call must not wait any longer
  std::condition_variable no_guests;
  std::uint64_t guests = 0;
  KeySet done_keys;
  KeySet keys;  // of this run
  std::deque<WriterRow> queue;
  std::uint64_t queue_bytes = 0;
  std::uint64_t added = 0;   // rows of this run
  std::uint64_t taken = 0;   // by the threads
  SmallImages small;         // of some of them
  std::uint64_t shards = 0;  // with those of earlier runs
  // Of the shard that is being filled.
  struct Filling {
    std::uint64_t rows = 0;
    std::uint64_t key_bytes = 0;
    std::uint64_t head_bytes = 0;
  };
  Filling filling;
  std::atomic<bool> stopping{false};  // the engine ends; cancels decoding too
  bool cancelled = false;
  bool ended = false;    // close() has begun: no more rows
  bool closing = false;  // a thread is in it
  bool running = false;  // the engine
  std::exception_ptr error;
  Summary summary;
  Stopwatch since;
  std::optional<Summary> published_set;  // options.out is complete
  std::optional<Summary> closed;
  std::thread engine;
};

}  // namespace shard::convert
