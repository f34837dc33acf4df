// The inside of a Loader: one feeder thread that keeps the ring full.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/thread_pool.hpp"
#include "resident.hpp"
#include "ring.hpp"
#include "shard/loader/loader.hpp"
#include "transport/transport.hpp"

namespace shard {

class LoaderImpl {
 public:
  LoaderImpl(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Device> device, LoaderOptions options);
  LoaderImpl(const LoaderImpl&) = delete;
  LoaderImpl& operator=(const LoaderImpl&) = delete;
  ~LoaderImpl();

  void start_epoch(std::uint64_t epoch, std::uint64_t first_batch);
  // Null: the end of the epoch.
  Slot* next();
  bool wait_ready(std::chrono::milliseconds timeout);
  void cancel() noexcept;
  LoaderState state() const;
  void resume(const LoaderState& state);
  LoaderStats stats() const;

  const std::shared_ptr<const Dataset>& dataset() const noexcept { return dataset_; }
  const LoaderOptions& options() const noexcept { return options_; }
  const SampleSpec& delivered() const noexcept { return delivered_; }
  const Order& order() const noexcept { return order_; }
  const std::shared_ptr<Ring>& ring() const noexcept { return ring_; }
  bool made_by_another_process() const noexcept;
  // This epoch runs and was not handed out to its end, or was resumed there and that was not said yet.
  bool inside(std::uint64_t epoch) const;

 private:
  void require_same_process() const;
  void require_ring() const;  // throws what made it fail
  void prepare_slots();
  void make_resident();
  void feed();  // the feeder thread
  bool feed_epoch(std::uint64_t epoch, std::uint64_t first_batch);
  bool go_on_to(std::uint64_t epoch, std::uint64_t first_batch);
  void begin_epoch(std::unique_lock<std::mutex>& lock, std::uint64_t epoch, std::uint64_t first_batch);
  Slot* acquire();  // waits for a free slot and counts the wait; null: stopped
  void fail(Slot& slot, std::exception_ptr error);
  void begin(Slot& slot, std::uint64_t epoch, std::uint64_t index);
  void end(Slot& slot);
  void wait_copied(const Slot& slot);
  void hand_over(Slot& slot);
  void draw_views(Slot& slot) const;
  void open_shards(const Slot& slot);
  void gather_columns(Slot& slot);
  void place_samples(Slot& slot);
  void check_last_batch();
  bool stopping() const noexcept { return stop_epoch_.load(std::memory_order_relaxed); }

  const std::shared_ptr<const Dataset> dataset_;
  const std::shared_ptr<Device> device_;
  const LoaderOptions options_;
  const Order order_;
  const std::uint64_t order_digest_;
  const std::shared_ptr<const StoredForm> form_;
  const SampleSpec stored_;  // as the data set records it
  TransformWork transform_;  // of the batch that is made; the feeder's, once it runs
  const SampleSpec delivered_;
  const bool identity_;
  bool warm_ = false;                        // feeder: a batch was made
  std::uint64_t placed_ = 0;                 // feeder: batches whose samples were placed
  std::vector<std::uint64_t> shard_placed_;  // feeder, by shard: the last such batch that reads it
  std::vector<CopyItem> gathered_;           // feeder: scratch
  double link_wait_seconds_ = 0;             // feeder
  std::uint64_t columns_pinned_bytes_ = 0;

  // What the work in the streams and on the pool reads and writes stands before them: it goes after they end.
  std::shared_ptr<Ring> ring_;
  struct Retirement {
    Ring& ring;
    ~Retirement() { ring.retire(); }
  } retirement_;
  std::optional<ResidentSamples> resident_;
  std::unique_ptr<Block> scratch_;  // device: TransformWork::unpacked
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Stream>
      copy_stream_;  // one: two in turn were slower (batches of 32: 0.92 of the link for 0.94)
  std::unique_ptr<Stream> compute_stream_;
  std::vector<std::vector<const Column*>>
      shard_columns_;  // by shard, in the order of the slots' columns; filled at first use
  std::string reason_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  struct Request {
    std::uint64_t epoch = 0;
    std::uint64_t first_batch = 0;
  };
  std::optional<Request> request_;  // for the feeder
  bool idle_ = true;                // the feeder has nothing to do
  bool quit_ = false;
  bool cancelled_ = false;
  std::exception_ptr failed_;  // what next() threw in this epoch: it throws the same again
  // The batch handed out last, where the device decodes samples.
  struct HandedOut {
    const Verdict* verdict = nullptr;
    std::uint64_t batch = 0;
    Event copied;
    Event ready;
  };
  HandedOut last_;
  std::atomic<bool> stop_epoch_{false};
  std::optional<std::uint64_t> first_epoch_;  // the first one that ran: Verify::first_epoch
  bool started_ = false;
  std::uint64_t epoch_ = 0;
  std::uint64_t consumed_ = 0;   // batches of epoch_ handed out
  bool resumed_at_end_ = false;  // nothing is left of epoch_, which the next call of next() says
  LoaderStats stats_;
  std::uint64_t consumer_wait_nanoseconds_ = 0;
  std::thread feeder_;
};

}  // namespace shard
