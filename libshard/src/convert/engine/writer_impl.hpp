// The writer's threads and what they share. Private to writer.cpp, writer_folder.cpp,
// writer_rows.cpp and writer_close.cpp.
//
// add() gives each row a shard and a place in it, and queues it. Threads decode and store rows (work);
// another publishes full shards in order (publish_loop). Everything that they share is guarded by one mutex;
// a shard's rejects and warnings by the shard's own.
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
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "convert/engine/steps.hpp"
#include "convert/engine/writer_journal.hpp"
#include "convert/plan/decoding.hpp"
#include "convert/plan/key_set.hpp"
#include "convert/publish/folder_lock.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/sources/input_file.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/convert/writer.hpp"
#include "shard/shard_writer.hpp"

namespace shard::convert {

// A shard that is being written.
struct WriterShard {
  WriterShard(ShardWriter shard_writer, std::uint64_t number)
      : writer(std::move(shard_writer)), shard(number) {}

  ShardWriter writer;
  const std::uint64_t shard;
  std::deque<InputRow> rows;  // made with the writer's mutex, set by the thread that handles the row
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, Reject>> rejects;  // by row; guarded by mutex
  image::WarningCounts warnings;                          // likewise
  std::atomic<std::uint64_t> stored{0};
  std::uint64_t added = 0;       // rows handed over; guarded by the writer's mutex, as are the following
  std::uint64_t done = 0;        // of these, rows that were handled
  std::uint64_t key_bytes = 0;   // of these
  std::uint64_t head_bytes = 0;  // of these, in the head of the shard
  bool full = false;             // no more rows follow
};

struct WriterTask {
  WriterRow row;
  WriterShard* shard = nullptr;
  InputRow* input = nullptr;
  std::uint64_t index = 0;   // of the row in the shard
  std::uint64_t number = 0;  // of the row in this run
};

// Of all that a row holds in memory.
std::uint64_t bytes_of(const WriterRow& row);

// What each thread has of its own.
struct WriterTools {
  WriterTools(const WriterOptions& options, image::MemoryBudget& memory, const std::atomic<bool>& stop)
      : reader(std::filesystem::path()),
        preprocessor(options.preprocess),
        decode(decode_options(options, &stop)),
        sample(options.sample_spec().size_bytes()) {
    decode.memory = &memory;
  }

  InputReader reader;
  image::Decoder decoder;
  image::Preprocessor preprocessor;
  image::DecodeOptions decode;
  std::vector<std::byte> sample;
  std::vector<std::uint8_t> rgb;
  std::vector<std::span<const std::byte>> columns, images;
};

// The groups of methods are in writer_folder.cpp, writer.cpp, writer_close.cpp and writer_rows.cpp.
struct Writer::Impl {
  explicit Impl(const WriterOptions& given);
  ~Impl();

  void open_folder();
  void open_replacement();
  void resume_or_clear(const PlanRecord& there);
  void continue_finished();
  void continue_with(const PlanRecord& there);
  void take_columns(const std::vector<ColumnSpec>& columns);
  void declare(std::vector<ColumnSpec> columns);

  void start();
  void fail(std::exception_ptr error) noexcept;
  void end_all(std::exception_ptr error) noexcept;
  void throw_if_failed() const;
  void end_shard(WriterShard& shard);
  WriterShard* shard_for(std::uint64_t key_bytes, std::uint64_t head_bytes);
  void enqueue(WriterRow&& row, const std::string& key, WriterShard& shard, std::uint64_t head_bytes);
  std::optional<bool> try_add(WriterRow& row, std::chrono::milliseconds patience);
  Summary close();
  Summary finish(std::unique_lock<std::mutex>& lock);
  Summary publish_all(std::uint64_t rows);

  void require_own_process() const;
  void check(const WriterRow& row) const;
  void check_columns_of(const WriterRow& row) const;
  std::uint64_t head_bytes_of(const WriterRow& row, const std::string& key) const;
  void decode(WriterTask& task, WriterTools& tools, InputRow& input, image::WarningSet& found);
  void convert(WriterTask& task, WriterTools& tools);
  void work() noexcept;
  void publish(WriterShard& shard);
  void publish_loop() noexcept;

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
  image::MemoryBudget memory;
  std::atomic<bool> stop{false};  // cancels decoding too

  // Set before the threads start.
  bool declared = false;
  bool complete = false;  // options.out held the finished data set
  DatasetSpec spec;
  PlanRecord record;
  std::uint64_t per_shard = 0;
  std::uint64_t head_row =
      0;  // bytes of each row in the head of a shard, without key and what is not of fixed size
  std::uint64_t first_shard = 0;  // of this run
  std::uint64_t rows_before = 0;  // of earlier runs

  mutable std::mutex mutex;  // guards all below
  std::condition_variable has_work;
  std::condition_variable has_room;
  std::condition_variable may_publish;
  std::condition_variable no_guests;
  std::uint64_t guests = 0;
  KeySet done_keys;
  KeySet keys;  // of this run
  std::deque<WriterTask> queue;
  std::uint64_t queue_bytes = 0;
  std::uint64_t added = 0;                        // rows of this run
  std::uint64_t handled = 0;                      // each row before it was handled
  std::deque<bool> ahead;                         // of the rows from `handled` on: whether it was
  std::deque<std::unique_ptr<WriterShard>> open;  // in order
  std::uint64_t next_shard = 0;
  std::uint64_t last_key_bytes = 0;  // per row, of the shard before
  bool cancelled = false;
  bool ended = false;    // close() has begun: no more rows
  bool closing = false;  // a thread is in it
  std::exception_ptr error;
  Summary summary;
  Stopwatch since;
  std::optional<Summary> published;  // options.out is complete
  std::optional<Summary> closed;
  std::vector<std::thread> threads;
};

}  // namespace shard::convert
